/* Convolutions as matrix products: C = A * B, with a row of A per place of the result (what the
 * window sees there), a column of B per output feature (the kernel), and blocks of A made as they
 * are needed. The gradients of a convolution are convolutions too, with dimensions in other places.
 *
 * Everything is decoded: strides in elements of each logical dimension say where things lie, so any
 * layout and any view will do.
 */
#ifndef SF_RUN_CONV_CONV_H
#define SF_RUN_CONV_CONV_H

#include "base/threads.h"
#include "ir/type.h"
#include "run/cpu/epilogue.h"

/* One spatial dimension. Window number x sees, at w (counted backwards when reversed), the position
 *
 *     x * stride + w * dilation - low
 *
 * of lhs with its elements `base` apart; elsewhere are zeros. */
typedef struct sf_conv_dim {
    int64_t lhs, window, out; /* sizes */
    int64_t stride, low, base, dilation;
    bool reversed;
    int64_t lhs_stride, rhs_stride, out_stride;
} sf_conv_dim;

/* With groups of features, output features of group g see the input features of group g; with groups
 * of batches, the batch elements of group g. At most one of the two numbers is not 1. */
typedef struct sf_conv {
    int spatial;
    int64_t batch;    /* of the result */
    int64_t channels; /* that an output feature sees: the kernel's input features */
    int64_t features; /* of the result, all groups together */
    int64_t feature_groups, batch_groups;
    sf_dtype lhs_dtype, rhs_dtype, out_dtype; /* as sf_gemm_can allows */
    const void *lhs, *rhs;
    void *out;
    int64_t lhs_batch, lhs_feature, rhs_input, rhs_output, out_batch, out_feature; /* strides */
    sf_conv_dim space[SF_MAX_RANK];
    const sf_epilogue
        *epilogue; /* or NULL; the result then has 2 features or more, which lie side by
                                     side, no groups, and no gaps */
    void *scratch; /* sf_conv_scratch bytes, 64-byte aligned */
} sf_conv;

int64_t sf_conv_scratch(const sf_conv *conv, int threads);

/* The result is the same for any number of threads. */
void sf_conv_run(const sf_conv *conv, sf_threads *threads);

#endif
