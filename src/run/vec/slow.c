/* Kernels that go element by element through libm or through the tables of dtype.c. */
#include <math.h>
#include <string.h>

#include "run/vec/set.h"

static double logistic(double x)
{
    double e = exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}

#define KERNEL(function, number, expression)                                                       \
    void function(void *dst, const void *a, const void *b, const void *c, int64_t count)           \
    {                                                                                              \
        (void)b, (void)c;                                                                          \
        const number *first = a, *second = b;                                                      \
        number *out = dst;                                                                         \
        (void)second;                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = expression;                                                                   \
    }
#define ONE(name) KERNEL(sf_vec_f64_##name, double, name(first[i]))

ONE(cbrt)
ONE(exp)
ONE(expm1)
ONE(log)
ONE(log1p)
ONE(logistic)
ONE(tanh)
ONE(sin)
ONE(cos)
ONE(tan)
ONE(erf)
KERNEL(sf_vec_f64_rem, double, fmod(first[i], second[i]))
KERNEL(sf_vec_f64_pow, double, pow(first[i], second[i]))
KERNEL(sf_vec_f64_atan2, double, atan2(first[i], second[i]))
KERNEL(sf_vec_f32_rem, float, fmodf(first[i], second[i]))
KERNEL(sf_vec_f32_atan2, float, (float)atan2((double)first[i], (double)second[i]))

/* Modulo 2^64, so the low bits are right for any width. A negative power of anything but 1 and -1 is
 * 0, as the quotient would be. */
static int64_t power(int64_t x, int64_t y)
{
    if (y < 0)
        return x == -1 ? (y % 2 == 0 ? 1 : -1) : x == 1;
    uint64_t result = 1, base = (uint64_t)x;
    for (uint64_t exponent = (uint64_t)y; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return (int64_t)result;
}

KERNEL(sf_vec_i32_pow, int32_t, (int32_t)power(first[i], second[i]))
KERNEL(sf_vec_i64_pow, int64_t, power(first[i], second[i]))

static int64_t quotient(int64_t x, int64_t y)
{
    if (y == 0)
        return -1;
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static int64_t remainder_of(int64_t x, int64_t y)
{
    if (y == 0)
        return x;
    return y == -1 ? 0 : x % y;
}

KERNEL(sf_vec_i64_div, int64_t, quotient(first[i], second[i]))
KERNEL(sf_vec_i64_rem, int64_t, remainder_of(first[i], second[i]))

float sf_vec_far_sin(float x)
{
    return (float)sin((double)x);
}

float sf_vec_far_cos(float x)
{
    return (float)cos((double)x);
}

float sf_vec_far_tan(float x)
{
    return (float)tan((double)x);
}

enum { CHUNK = 256 };

/* The conversions of the processor make a NaN quiet. These leave its bits in place, as far as there is room for them;
 * those of the narrow types are among the upper ones. */
static float to_float(double value)
{
    if (!isnan(value))
        return (float)value;
    uint64_t wide;
    memcpy(&wide, &value, sizeof wide);
    uint32_t bits =
        (uint32_t)(wide >> 32 & 0x80000000) | 0x7f800000 | (uint32_t)(wide >> 29 & 0x7fffff);
    float nan;
    memcpy(&nan, &bits, sizeof nan);
    return isnan(nan) ? nan : (float)value;
}

/* A NaN that the type has is stored as it is; others become quiet, or the only one there is. */
static void store_nan(sf_dtype dtype, char *dst, float value)
{
    const sf_dtype_info *info = sf_dtype_get(dtype);
    uint32_t bits, low = (UINT32_C(1) << (23 - info->mantissa)) - 1;
    memcpy(&bits, &value, sizeof bits);
    sf_store_f64(dtype, dst, 0, (double)value);
    uint64_t narrow = (uint64_t)(bits >> 31) << (info->bits - 1) |
                      ((UINT64_C(1) << info->exponent) - 1) << info->mantissa |
                      (bits & 0x7fffff) >> (23 - info->mantissa);
    bool is_own = dtype == SF_F8E3M4 || dtype == SF_F8E4M3 || dtype == SF_F8E5M2;
    if (is_own && (bits & low) == 0)
        sf_store_bits(dtype, dst, 0, narrow);
}

static void load(sf_dtype dtype, float *dst, const char *src, int64_t stride, int64_t count)
{
    double values[CHUNK];
    int64_t bytes = stride * sf_dtype_get(dtype)->bytes;
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t left = count - first, some = left < CHUNK ? left : CHUNK;
        if (stride == 1)
            sf_load_f64s(dtype, src, first, some, values);
        for (int64_t i = 0; i < some; i++)
            dst[first + i] = to_float(
                stride == 1 ? values[i] : sf_load_f64(dtype, src + (first + i) * bytes, 0));
    }
}

static void store(sf_dtype dtype, char *dst, int64_t stride, const float *src, int64_t count)
{
    double values[CHUNK];
    int64_t bytes = stride * sf_dtype_get(dtype)->bytes;
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t left = count - first, some = left < CHUNK ? left : CHUNK;
        for (int64_t i = 0; i < some; i++)
            values[i] = (double)src[first + i];
        if (stride == 1)
            sf_store_f64s(dtype, dst, first, some, values);
        for (int64_t i = 0; i < some; i++)
            if (isnan(values[i]))
                store_nan(dtype, dst + (first + i) * bytes, src[first + i]);
            else if (stride != 1)
                sf_store_f64(dtype, dst + (first + i) * bytes, 0, values[i]);
    }
}

static void round_all(sf_dtype dtype, float *dst, const float *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = (float)sf_round(dtype, (double)src[i]);
}

#define X(id)                                                                                      \
    void sf_vec_load_##id(void *dst, const void *src, int64_t stride, int64_t count)               \
    {                                                                                              \
        load(SF_##id, dst, src, stride, count);                                                    \
    }                                                                                              \
    void sf_vec_store_##id(void *dst, int64_t stride, const void *src, int64_t count)              \
    {                                                                                              \
        store(SF_##id, dst, stride, src, count);                                                   \
    }                                                                                              \
    void sf_vec_round_##id(void *dst, const void *a, const void *b, const void *c, int64_t count)  \
    {                                                                                              \
        (void)b, (void)c;                                                                          \
        round_all(SF_##id, dst, a, count);                                                         \
    }
SF_VEC_NARROW(X)
#undef X
