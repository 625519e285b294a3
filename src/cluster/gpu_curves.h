/* Measured curves of a GPU, by types of factors. Its units work on all of a batch concurrently,
 * read memory while they compute, and have a curve for each kind of work: a product by its depth,
 * over which it sums, a convolution and the gradient of its kernel, attention and its gradient.
 * Curves are seconds by flops; one without points was not measured. */
#ifndef SF_CLUSTER_GPU_CURVES_H
#define SF_CLUSTER_GPU_CURVES_H

#include "cluster/curve.h"

/* The math of a product: the type of the factors, or a way to treat f32. */
typedef enum sf_math {
    SF_MATH_F64,
    SF_MATH_F32,
    SF_MATH_TF32,
    SF_MATH_BF16,
    SF_MATH_F16,
    SF_MATH_F8,
    SF_MATH_COUNT
} sf_math;
const char *sf_math_name(sf_math math); /* "f64", ... */

enum { SF_MOST_DEPTHS = 16 };

/* Curves for rising depths. Between two of them, a power law. */
typedef struct sf_depths {
    int count; /* at most SF_MOST_DEPTHS */
    const double *depths;
    const sf_curve *curves;
} sf_depths;

/* Which kernels of a GPU do it. */
typedef enum sf_unit {
    SF_UNIT_OTHER, /* products by `products`, all else by loops */
    SF_UNIT_CONVOLUTION,
    SF_UNIT_STRIDED,    /* one that moves its window by strides */
    SF_UNIT_TRANSPOSED, /* one that dilates its images: the gradient of one with strides */
    SF_UNIT_KERNEL_GRADIENT,
    SF_UNIT_STRIDED_GRADIENT, /* of a kernel that was moved by strides */
    SF_UNIT_ATTENTION,
    SF_UNIT_ATTENTION_GRADIENT,
    SF_UNIT_COUNT
} sf_unit;
const char *sf_unit_name(sf_unit unit); /* "convolutions", ... */

/* How memory is gone over, where not as by a loop over whole tensors. */
typedef enum sf_touch {
    SF_TOUCH_LOOP,
    /* a loop that reads some operand several times: one number for each row, or column */
    SF_TOUCH_REPEATS,
    SF_TOUCH_MOVES, /* any other op that moves or combines elements */
    SF_TOUCH_COUNT
} sf_touch;
const char *sf_touch_name(sf_touch touch); /* "repeats", ... */

typedef struct sf_gpu {
    sf_depths products[SF_MATH_COUNT];
    sf_curve units[SF_UNIT_COUNT][SF_MATH_COUNT]; /* that of OTHER has no points */
    sf_curve memory[SF_TOUCH_COUNT];              /* seconds by bytes; that of LOOP has no points */
} sf_gpu;

/* Seconds of a product or of the unit's work; 0 if that was not measured. */
double sf_gpu_seconds(const sf_gpu *gpu, sf_unit unit, sf_math math, double depth, double flops);

/* The least seconds of such a product, in parts of any size up to it; 0: it was not measured. */
double sf_gpu_least(const sf_gpu *gpu, sf_unit unit, sf_math math, double depth, double flops);

#endif
