/* Batch normalization: in training, for inference, and its gradient.
 *
 * Import replaces each by its definition (front/expand_batch_norm.h), so this file has only syntax
 * and types. */
#include "op/slots.h"
#include "op/util.h"

static const sf_attrdef attrs[] = {
    [SF_BATCH_NORM_EPSILON] = {.name = "epsilon",
                               .kind = SF_ATTR_DENSE,
                               .text = SF_AS_F32,
                               .required = true},
    [SF_BATCH_NORM_FEATURE] = {.name = "feature_index", .kind = SF_ATTR_INT, .required = true},
};

enum { NATTRS = sizeof attrs / sizeof *attrs };

/* The operand is a tensor of floats; others hold one number per feature, or are `full`: of its type. */
static sf_status check_operands(const sf_op *op, int full, sf_diag *diag)
{
    const sf_type *operand = op->in[0];
    int64_t feature = sf_op_int(op, SF_BATCH_NORM_FEATURE, 0);
    if (!sf_is_float(operand->dtype))
        return SF_OP_FAIL(op, diag, "normalizes floats, not %s",
                          sf_dtype_get(operand->dtype)->name);
    if (feature < 0 || feature >= operand->rank)
        return SF_OP_FAIL(op, diag,
                          "feature_index is %" PRId64 ", but the operand has %d dimensions",
                          feature, operand->rank);
    if (!op->attrs[SF_BATCH_NORM_EPSILON]->dense.data)
        return SF_OP_FAIL(op, diag, "the text leaves epsilon out");
    const sf_type *vector = sf_type_get(op->pool, operand->dtype, 1, &operand->dims[feature]);
    for (int i = 1; i < op->noperands; i++) {
        const sf_type *expected = i == full ? operand : vector;
        char found[SF_TYPE_TEXT], wanted[SF_TYPE_TEXT];
        if (op->in[i] != expected)
            return SF_OP_FAIL(op, diag, "operand %d is %s, but must be %s", i,
                              sf_type_text(op->in[i], found), sf_type_text(expected, wanted));
    }
    return SF_OK;
}

static sf_status infer_inference(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    SF_TRY(check_operands(op, 0, diag));
    out[0] = op->in[0];
    return SF_OK;
}

/* Operand, scale and offset. */
static sf_status infer_training(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    SF_TRY(check_operands(op, 0, diag));
    out[0] = op->in[0];
    out[1] = out[2] = op->in[1];
    return SF_OK;
}

/* Operand, scale, mean, variance and the gradient of the output. */
static sf_status infer_grad(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    SF_TRY(check_operands(op, 4, diag));
    out[0] = op->in[0];
    out[1] = out[2] = op->in[1];
    return SF_OK;
}

static sf_status eval_none(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)in, (void)out;
    return sf_fail(eval->diag, SF_EINPUT, op->loc,
                   "%s: import should have put its definition in its place", op->def->name);
}

const sf_opdef sf_op_batch_norm_grad = {
    .name = "batch_norm_grad",
    .dialect = "stablehlo",
    .hlo = "batch-norm-grad",
    .doc = "The gradients of operand, scale and offset of batch_norm_training. Import replaces it "
           "by its definition.",
    .id = SF_OP_BATCH_NORM_GRAD,
    .min_operands = 5,
    .max_operands = 5,
    .nresults = 3,
    .attrs = attrs,
    .nattrs = NATTRS,
    .infer = infer_grad,
    .factors = sf_factors_whole,
    .eval = eval_none,
};

const sf_opdef sf_op_batch_norm_inference = {
    .name = "batch_norm_inference",
    .dialect = "stablehlo",
    .hlo = "batch-norm-inference",
    .doc = "Each feature normalized by a given mean and variance. Import replaces it "
           "by its definition.",
    .id = SF_OP_BATCH_NORM_INFERENCE,
    .min_operands = 5,
    .max_operands = 5,
    .nresults = 1,
    .attrs = attrs,
    .nattrs = NATTRS,
    .infer = infer_inference,
    .factors = sf_factors_whole,
    .eval = eval_none,
};

const sf_opdef sf_op_batch_norm_training = {
    .name = "batch_norm_training",
    .dialect = "stablehlo",
    .hlo = "batch-norm-training",
    .doc = "Each feature normalized by its own mean and variance, and both. Import replaces it "
           "by its definition.",
    .id = SF_OP_BATCH_NORM_TRAINING,
    .min_operands = 3,
    .max_operands = 3,
    .nresults = 3,
    .attrs = attrs,
    .nattrs = NATTRS,
    .infer = infer_training,
    .factors = sf_factors_whole,
    .eval = eval_none,
};
