/* The geometry of a convolution, decoded: strides in elements of each logical dimension say where things lie, so
 * any layout and any view will do. */
#ifndef SF_PROG_CONV_GEOMETRY_H
#define SF_PROG_CONV_GEOMETRY_H

#include "prog/view.h"

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
    bool exact; /* the text wants more precision than products of the device have */
    sf_dtype lhs_dtype, rhs_dtype, out_dtype;
    int64_t lhs_batch, lhs_feature, rhs_input, rhs_output, out_batch, out_feature; /* strides */
    sf_conv_dim space[SF_MAX_RANK];
} sf_conv;

/* The views say where the tensors lie. */
sf_conv sf_conv_of_op(const sf_op *op, const sf_view *lhs, const sf_view *rhs, const sf_view *out);

/* Of the elements in the windows, the share that is not a zero of dilation: zeros are never
 * multiplied. */
double sf_conv_seen(const sf_conv *conv);

/* Multiplications and additions, without these zeros. */
double sf_conv_flops(const sf_conv *conv);

#endif
