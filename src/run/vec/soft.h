/* Rows of a softmax and of its gradient, for one instruction set. */
#ifndef SF_RUN_VEC_SOFT_H
#define SF_RUN_VEC_SOFT_H

#include "run/vec/vec_ops.h"

static void f32_soften(float *dst, const float *xs, float scale, float less, int64_t count)
{
    int64_t whole = whole_count(count);
    SEPARATE_STEPS
    for (int64_t i = 0; i < whole; i++)
        dst[i] = exp32(xs[i] * scale - less);
}

static void f32_slope(float *dst, const float *weights, const float *gradient, float scale,
                      float less, int64_t count)
{
    int64_t whole = whole_count(count);
    SEPARATE_STEPS
    for (int64_t i = 0; i < whole; i++)
        dst[i] = weights[i] * (gradient[i] - less) * scale;
}

#endif
