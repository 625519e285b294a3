#include "run/gemm_store.h"

#include <string.h>

static uint16_t narrow(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40); /* stays a NaN */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widen(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

static void store_f32(float *to, int64_t stride, const float *sums, int64_t count, bool accumulate)
{
    for (int64_t i = 0; i < count; i++)
        to[i * stride] = accumulate ? to[i * stride] + sums[i] : sums[i];
}

static void store_f64(double *to, int64_t stride, const double *sums, int64_t count,
                      bool accumulate)
{
    for (int64_t i = 0; i < count; i++)
        to[i * stride] = accumulate ? to[i * stride] + sums[i] : sums[i];
}

static void store_bf16(uint16_t *to, int64_t stride, const float *sums, int64_t count,
                       bool accumulate)
{
    for (int64_t i = 0; i < count; i++)
        to[i * stride] = narrow(accumulate ? widen(to[i * stride]) + sums[i] : sums[i]);
}

static void store_any(void *to, sf_dtype dtype, int64_t stride, const float *sums, int64_t count,
                      bool accumulate)
{
    for (int64_t i = 0; i < count; i++) {
        double sum = (double)sums[i];
        sf_store_f64(dtype, to, i * stride,
                     accumulate ? sf_load_f64(dtype, to, i * stride) + sum : sum);
    }
}

void sf_sums_store(void *to, sf_dtype dtype, int64_t stride, const void *sums, int64_t count,
                   bool accumulate)
{
    if (dtype == SF_F32)
        store_f32(to, stride, sums, count, accumulate);
    else if (dtype == SF_F64)
        store_f64(to, stride, sums, count, accumulate);
    else if (dtype == SF_BF16)
        store_bf16(to, stride, sums, count, accumulate);
    else
        store_any(to, dtype, stride, sums, count, accumulate);
}
