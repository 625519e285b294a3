#include "run/conv/op.h"

static sf_ints ints_of(const sf_op *op, const char *name)
{
    return sf_op_ints(op, sf_attr_slot(op->def, sf_str_of(name)));
}

static int64_t int_of(const sf_op *op, const char *name, int64_t otherwise)
{
    return sf_op_int(op, sf_attr_slot(op->def, sf_str_of(name)), otherwise);
}

static int64_t entry(sf_ints list, int index, int64_t otherwise)
{
    return list.count ? list.at[index] : otherwise;
}

static sf_conv_dim dim_of(const sf_op *op, int index, const sf_view *lhs, const sf_view *rhs,
                          const sf_view *out)
{
    int64_t l = ints_of(op, "input_spatial_dimensions").at[index];
    int64_t r = ints_of(op, "kernel_spatial_dimensions").at[index];
    int64_t o = ints_of(op, "output_spatial_dimensions").at[index];
    return (sf_conv_dim){
        .lhs = lhs->dims[l],
        .window = rhs->dims[r],
        .out = out->dims[o],
        .stride = entry(ints_of(op, "window_strides"), index, 1),
        .low = entry(ints_of(op, "padding"), 2 * index, 0),
        .base = entry(ints_of(op, "lhs_dilation"), index, 1),
        .dilation = entry(ints_of(op, "rhs_dilation"), index, 1),
        .reversed = entry(ints_of(op, "window_reversal"), index, 0) != 0,
        .lhs_stride = lhs->strides[l],
        .rhs_stride = rhs->strides[r],
        .out_stride = out->strides[o],
    };
}

sf_conv sf_conv_of_op(const sf_op *op, const sf_view *lhs, const sf_view *rhs, const sf_view *out)
{
    int64_t lhs_batch = int_of(op, "input_batch_dimension", 0);
    int64_t lhs_feature = int_of(op, "input_feature_dimension", 0);
    int64_t rhs_input = int_of(op, "kernel_input_feature_dimension", 0);
    int64_t rhs_output = int_of(op, "kernel_output_feature_dimension", 0);
    int64_t out_batch = int_of(op, "output_batch_dimension", 0);
    int64_t out_feature = int_of(op, "output_feature_dimension", 0);
    sf_conv conv = {
        .spatial = ints_of(op, "input_spatial_dimensions").count,
        .batch = out->dims[out_batch],
        .channels = rhs->dims[rhs_input],
        .features = out->dims[out_feature],
        .feature_groups = int_of(op, "feature_group_count", 1),
        .batch_groups = int_of(op, "batch_group_count", 1),
        .lhs_dtype = lhs->dtype,
        .rhs_dtype = rhs->dtype,
        .out_dtype = out->dtype,
        .lhs_batch = lhs->strides[lhs_batch],
        .lhs_feature = lhs->strides[lhs_feature],
        .rhs_input = rhs->strides[rhs_input],
        .rhs_output = rhs->strides[rhs_output],
        .out_batch = out->strides[out_batch],
        .out_feature = out->strides[out_feature],
    };
    for (int i = 0; i < conv.spatial; i++)
        conv.space[i] = dim_of(op, i, lhs, rhs, out);
    return conv;
}
