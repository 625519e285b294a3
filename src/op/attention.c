#include "op/attention.h"

static const sf_attrdef attention_attrs[SF_ATTENTION_SLOTS] = {
    [SF_ATTENTION_CAUSAL] = {.name = "causal", .kind = SF_ATTR_INT},
    [SF_ATTENTION_SCALE] = {.name = "scale", .kind = SF_ATTR_INT, .required = true},
    [SF_ATTENTION_OFFSET] = {.name = "offset", .kind = SF_ATTR_INT},
};

/* The area below the line that begins at the offset, up to all keys. */
double sf_attention_sees(int64_t queries, int64_t keys, int64_t offset)
{
    double q = (double)queries, k = (double)keys, o = (double)offset;
    if (o >= k)
        return 1;
    double rising = k - o < q ? k - o : q;
    return (rising * (o + rising / 2) + (q - rising) * k) / (q * k);
}

double sf_attention_seen(const sf_op *op)
{
    return sf_op_int(op, SF_ATTENTION_CAUSAL, 0)
               ? sf_attention_sees(op->in[0]->dims[1], op->in[1]->dims[1],
                                   sf_op_int(op, SF_ATTENTION_OFFSET, 0))
               : 1;
}

double sf_attention_seen_by_last(const sf_op *op)
{
    int64_t queries = op->in[0]->dims[1], keys = op->in[1]->dims[1];
    return sf_op_int(op, SF_ATTENTION_CAUSAL, 0) && queries < keys
               ? sf_attention_sees(queries, keys, keys - queries)
               : sf_attention_seen(op);
}

/* Two products forward, five backward. */
static double flops_of(const sf_op *op, int products)
{
    double all = (double)op->in[0]->count * (double)op->in[1]->dims[1] * 2 * products;
    return all * sf_attention_seen(op);
}

static double flops_forward(const sf_op *op)
{
    return flops_of(op, 2);
}

static double flops_backward(const sf_op *op)
{
    return flops_of(op, 5);
}

const sf_opdef sf_op_attention = {
    .name = "attention",
    .dialect = "sheaf",
    .doc = "Softmax of scaled scores, times values.",
    .id = SF_ATTENTION,
    .min_operands = 3,
    .max_operands = 3,
    .nresults = 2,
    .attrs = attention_attrs,
    .nattrs = SF_ATTENTION_SLOTS,
    .flops = flops_forward,
};

const sf_opdef sf_op_attention_gradient = {
    .name = "attention_gradient",
    .dialect = "sheaf",
    .doc = "The gradients of attention.",
    .id = SF_ATTENTION_GRADIENT,
    .min_operands = 6,
    .max_operands = 6,
    .nresults = 3,
    .attrs = attention_attrs,
    .nattrs = SF_ATTENTION_SLOTS,
    .flops = flops_backward,
};
