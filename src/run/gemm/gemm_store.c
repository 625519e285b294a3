#include "run/gemm/gemm_store.h"

#include "run/vec/vec.h"

static void store_f64(double *to, int64_t stride, const double *sums, int64_t count,
                      bool accumulate)
{
    for (int64_t i = 0; i < count; i++)
        to[i * stride] = accumulate ? to[i * stride] + sums[i] : sums[i];
}

static void add_f32(float *to, int64_t stride, const float *sums, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i * stride] += sums[i];
}

/* The old value is widened, added, and rounded with the sum. */
static void add_narrow(char *to, sf_dtype dtype, int64_t stride, const float *sums, int64_t count)
{
    enum { RUN = 256 };
    const sf_vec *vec = sf_vec_get();
    int64_t step = stride * sf_dtype_get(dtype)->bytes;
    float both[RUN];
    for (int64_t i = 0; i < count; i += RUN) {
        int64_t n = count - i < RUN ? count - i : RUN;
        vec->loads[dtype](both, to + i * step, stride, n);
        for (int64_t j = 0; j < n; j++)
            both[j] += sums[i + j];
        vec->stores[dtype](to + i * step, stride, both, n);
    }
}

void sf_sums_store(void *to, sf_dtype dtype, int64_t stride, const void *sums, int64_t count,
                   bool accumulate)
{
    if (dtype == SF_F64)
        store_f64(to, stride, sums, count, accumulate);
    else if (!accumulate)
        sf_vec_get()->stores[dtype](to, stride, sums, count);
    else if (dtype == SF_F32)
        add_f32(to, stride, sums, count);
    else
        add_narrow(to, dtype, stride, sums, count);
}
