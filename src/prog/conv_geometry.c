#include "prog/conv_geometry.h"

#include "op/slots.h"
#include "op/util.h"

static int64_t entry_or(sf_ints list, int index, int64_t otherwise)
{
    return list.count ? list.at[index] : otherwise;
}

static sf_conv_dim dim_of(const sf_op *op, int index, const sf_view *lhs, const sf_view *rhs,
                          const sf_view *out)
{
    int64_t l = sf_op_ints(op, SF_CONV_LHS_SPATIAL).at[index];
    int64_t r = sf_op_ints(op, SF_CONV_RHS_SPATIAL).at[index];
    int64_t o = sf_op_ints(op, SF_CONV_OUT_SPATIAL).at[index];
    return (sf_conv_dim){
        .lhs = lhs->dims[l],
        .window = rhs->dims[r],
        .out = out->dims[o],
        .stride = entry_or(sf_op_ints(op, SF_CONV_STRIDES), index, 1),
        .low = entry_or(sf_op_ints(op, SF_CONV_PADDING), 2 * index, 0),
        .base = entry_or(sf_op_ints(op, SF_CONV_LHS_DILATION), index, 1),
        .dilation = entry_or(sf_op_ints(op, SF_CONV_RHS_DILATION), index, 1),
        .reversed = entry_or(sf_op_ints(op, SF_CONV_REVERSAL), index, 0) != 0,
        .lhs_stride = lhs->strides[l],
        .rhs_stride = rhs->strides[r],
        .out_stride = out->strides[o],
    };
}

sf_conv sf_conv_of_op(const sf_op *op, const sf_view *lhs, const sf_view *rhs, const sf_view *out)
{
    int64_t lhs_batch = sf_op_int(op, SF_CONV_LHS_BATCH, 0);
    int64_t lhs_feature = sf_op_int(op, SF_CONV_LHS_FEATURE, 0);
    int64_t rhs_input = sf_op_int(op, SF_CONV_RHS_INPUT, 0);
    int64_t rhs_output = sf_op_int(op, SF_CONV_RHS_OUTPUT, 0);
    int64_t out_batch = sf_op_int(op, SF_CONV_OUT_BATCH, 0);
    int64_t out_feature = sf_op_int(op, SF_CONV_OUT_FEATURE, 0);
    sf_conv conv = {
        .spatial = sf_op_ints(op, SF_CONV_LHS_SPATIAL).count,
        .batch = out->dims[out_batch],
        .channels = rhs->dims[rhs_input],
        .features = out->dims[out_feature],
        .feature_groups = sf_op_int(op, SF_CONV_FEATURE_GROUPS, 1),
        .batch_groups = sf_op_int(op, SF_CONV_BATCH_GROUPS, 1),
        .exact = sf_op_is_exact(op),
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

/* Every feature of every place of the result sees all positions of its window. */
double sf_conv_seen(const sf_conv *conv)
{
    double part = 1;
    for (int d = 0; d < conv->spatial; d++) {
        const sf_conv_dim *dim = &conv->space[d];
        if (dim->base > 1 && dim->stride == 1 && dim->dilation == 1)
            part /= (double)dim->base;
    }
    return part;
}

double sf_conv_flops(const sf_conv *conv)
{
    double flops = 2 * sf_conv_seen(conv) * (double)conv->batch * (double)conv->channels *
                   (double)conv->features;
    for (int i = 0; i < conv->spatial; i++)
        flops *= (double)conv->space[i].out * (double)conv->space[i].window;
    return flops;
}
