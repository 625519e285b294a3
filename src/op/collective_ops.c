/* Collectives: exchanges of shards between the ranks of a group. They are ops of local graphs (local/local.h), not of StableHLO.
 *
 * The group of a rank is the ranks that differ from it only in the coordinates of the axes in the
 * set `axes`; `size` is their number, place p in [0, size) is the number of one of them
 * (shard/mesh.h).
 *
 *     all_reduce      x, ... -> x, ...          each combined over the group
 *     all_gather      x, ... -> [size, x], ...  row p is the x of place p
 *     reduce_scatter  [size, x], ... -> x, ...  row p, combined over the group, goes to place p
 *     all_to_all      [size, x] -> [size, x]    row p goes to place p; row p came from place p
 *     permute         x -> x                    from the rank with the coordinates of both axes
 *                     exchanged
 *
 * Several operands travel together, which changes nothing but the time.
 *
 * Between pipeline ranks (local/time/pipeline_step.h), they are ops of the steps of the pipeline
 * ranks that run a stage together: `groups` is the set of places along the one axis, `size` their
 * number, and `turn` the micro-batch. Then ranks have shards of the operand: each dimension is
 * exchanged by itself.
 *
 * `number` counts the collectives of a local graph. It is the same on every rank, and since no two have
 * the same, no two are ever merged: ranks that merged differently would wait for each other for ever. */
#include "op/body.h"
#include "op/slots.h"
#include "op/util.h"

enum { NATTRS = SF_COLLECTIVE_BODY + 1 };

#define COMMON                                                                                     \
    [SF_COLLECTIVE_AXES] = {.name = "axes", .kind = SF_ATTR_INT, .required = true},                \
    [SF_COLLECTIVE_SIZE] = {.name = "size", .kind = SF_ATTR_INT, .required = true},                \
    [SF_COLLECTIVE_NUMBER] = {.name = "number", .kind = SF_ATTR_INT, .required = true},            \
    [SF_COLLECTIVE_WHAT] = {.name = "what", .kind = SF_ATTR_TEXT, .derived = true, .note = true},  \
    [SF_COLLECTIVE_GROUPS] = {.name = "groups", .kind = SF_ATTR_INT},                              \
    [SF_COLLECTIVE_MICROBATCH] = {.name = "microbatch", .kind = SF_ATTR_INT}

static const sf_attrdef attrs[NATTRS] = {
    COMMON,
    [SF_COLLECTIVE_BODY] = {.name = "body", .kind = SF_ATTR_INT, .derived = true},
};
static const sf_attrdef moving_attrs[SF_COLLECTIVE_BODY] = {COMMON};

static int64_t group_size(const sf_op *op)
{
    return sf_op_int(op, SF_COLLECTIVE_SIZE, 1);
}

static sf_status check_group(const sf_op *op, sf_diag *diag)
{
    if (group_size(op) < 1)
        return SF_OP_FAIL(op, diag, "a group of %" PRId64 " ranks", group_size(op));
    if (sf_op_int(op, SF_COLLECTIVE_AXES, 0) < 0)
        return SF_OP_FAIL(op, diag, "the axes are no set");
    if (op->nresults != op->noperands)
        return SF_OP_FAIL(op, diag, "has %d operands but %d results", op->noperands, op->nresults);
    for (int i = 1; i < op->noperands; i++)
        if (op->in[i]->dtype != op->in[0]->dtype)
            return SF_OP_FAIL(op, diag, "operands 0 and %d have different element types", i);
    return SF_OK;
}

/* The operands are [size, ...]. */
static sf_status check_rows(const sf_op *op, sf_diag *diag)
{
    char text[SF_TYPE_TEXT];
    SF_TRY(check_group(op, diag));
    for (int i = 0; i < op->noperands; i++)
        if (op->in[i]->rank < 1 || op->in[i]->dims[0] != group_size(op))
            return SF_OP_FAIL(op, diag, "%s has no row for each of %" PRId64 " ranks",
                              sf_type_text(op->in[i], text), group_size(op));
    return SF_OK;
}

static sf_status infer_all_reduce(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    SF_TRY(check_group(op, diag));
    for (int i = 0; i < op->noperands; i++)
        out[i] = op->in[i];
    return sf_check_body(op, SF_COLLECTIVE_BODY, 0, 1, diag);
}

static sf_status infer_all_gather(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    SF_TRY(check_group(op, diag));
    for (int i = 0; i < op->noperands; i++) {
        const sf_type *in = op->in[i];
        int64_t dims[SF_MAX_RANK + 1] = {group_size(op)};
        memcpy(dims + 1, in->dims, (size_t)in->rank * sizeof *dims);
        out[i] = sf_type_get(op->pool, in->dtype, in->rank + 1, dims);
        if (!out[i])
            return SF_OP_FAIL(op, diag, "the result is too large");
    }
    return SF_OK;
}

static sf_status infer_reduce_scatter(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    SF_TRY(check_rows(op, diag));
    for (int i = 0; i < op->noperands; i++) {
        const sf_type *in = op->in[i];
        out[i] = sf_type_get(op->pool, in->dtype, in->rank - 1, in->dims + 1);
    }
    return sf_check_body(op, SF_COLLECTIVE_BODY, 0, 1, diag);
}

static sf_status infer_all_to_all(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    out[0] = op->in[0];
    return check_rows(op, diag);
}

static sf_status infer_permute(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    out[0] = op->in[0];
    return check_group(op, diag);
}

/* Of those between groups: every dimension by itself, but for the rows of the members. */
static void factors_collective(const sf_op *op, sf_factoring *out)
{
    if (!op->attrs[SF_COLLECTIVE_GROUPS]) {
        sf_factors_whole(op, out);
        return;
    }
    const sf_collective_info *info = sf_collective_get(sf_op_collective(op->def));
    int rows_in = info->in_blocks, rows_out = info->out_blocks;
    for (int i = 0; i < op->noperands; i++) {
        const sf_type *in = op->in[i];
        for (int d = rows_in; d < in->rank; d++) {
            int factor = sf_factor_add(out, in->dims[d], SF_MAP, SF_MONOID_NONE);
            sf_factor_walk(out, i, d, factor);
            sf_factor_walk(out, op->noperands + i, d - rows_in + rows_out, factor);
        }
    }
}

static int linear_sum(const sf_op *op, uint32_t masks[])
{
    bool is_sum = sf_op_monoid(op, SF_COLLECTIVE_BODY) == SF_MONOID_ADD;
    return is_sum ? sf_linear_all(op, masks) : 0;
}

static double flops_collective(const sf_op *op)
{
    double count = 0;
    for (int i = 0; i < op->noperands; i++)
        count += (double)op->in[i]->count;
    return count;
}

/* In a group of one rank, the result is the operand. */
static sf_status eval_collective(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                 sf_tensor *out)
{
    if (group_size(op) != 1) {
        sf_fail(eval->diag, SF_EUNSUPPORTED, op->loc, "%s.%s of %s: runs on %" PRId64 " ranks only",
                op->def->dialect, op->def->name,
                op->attrs[SF_COLLECTIVE_WHAT] ? sf_op_text(op, SF_COLLECTIVE_WHAT) : "a tensor",
                group_size(op));
        return SF_EUNSUPPORTED;
    }
    for (int i = 0; i < op->noperands; i++)
        if (out[i].type->count > 0)
            memcpy(out[i].data, in[i].data, (size_t)sf_type_bytes(out[i].type));
    return SF_OK;
}

const sf_opdef sf_op_all_reduce = {
    .name = "all_reduce",
    .dialect = "sheaf",
    .doc = "The operands of all ranks of a group, reduced; every rank gets the result.",
    .id = SF_OP_ALL_REDUCE,
    .form = SF_FORM_GENERIC,
    .min_operands = 1,
    .max_operands = -1,
    .nresults = -1,
    .nregions = 1,
    .attrs = attrs,
    .nattrs = NATTRS,
    .infer = infer_all_reduce,
    .factors = factors_collective,
    .linear = linear_sum,
    .flops = flops_collective,
    .eval = eval_collective,
    .collective = SF_ALL_REDUCE + 1,
    .sample =
        {.arguments = "%a: tensor<3x4xf32>",
         .use =
             "%r = \"sheaf.all_reduce\"(%a) <{axes = 1 : i64, size = 2 : i64, number = 0 : i64}> "
             "({\n" SF_SAMPLE_BODY("add") "  }) : (tensor<3x4xf32>) -> tensor<3x4xf32>",
         .results = "%r",
         .types = "tensor<3x4xf32>"},
};

const sf_opdef sf_op_all_gather = {
    .name = "all_gather",
    .dialect = "sheaf",
    .doc = "The operands of all ranks of a group, stacked along a new first dimension.",
    .id = SF_OP_ALL_GATHER,
    .form = SF_FORM_GENERIC,
    .min_operands = 1,
    .max_operands = -1,
    .nresults = -1,
    .attrs = moving_attrs,
    .nattrs = SF_COLLECTIVE_BODY,
    .infer = infer_all_gather,
    .factors = factors_collective,
    .linear = sf_linear_all,
    .eval = eval_collective,
    .collective = SF_ALL_GATHER + 1,
    .sample =
        {.arguments = "%a: tensor<3x4xf32>",
         .use =
             "%r = \"sheaf.all_gather\"(%a) <{axes = 1 : i64, size = 2 : i64, number = 0 : i64}> : "
             "(tensor<3x4xf32>) -> tensor<2x3x4xf32>",
         .results = "%r",
         .types = "tensor<2x3x4xf32>"},
};

const sf_opdef sf_op_reduce_scatter = {
    .name = "reduce_scatter",
    .dialect = "sheaf",
    .doc = "The operands of all ranks of a group, reduced; every rank gets one row of the result.",
    .id = SF_OP_REDUCE_SCATTER,
    .form = SF_FORM_GENERIC,
    .min_operands = 1,
    .max_operands = -1,
    .nresults = -1,
    .nregions = 1,
    .attrs = attrs,
    .nattrs = NATTRS,
    .infer = infer_reduce_scatter,
    .factors = factors_collective,
    .linear = linear_sum,
    .flops = flops_collective,
    .eval = eval_collective,
    .collective = SF_REDUCE_SCATTER + 1,
    .sample = {.arguments = "%a: tensor<2x3x4xf32>",
               .use = "%r = \"sheaf.reduce_scatter\"(%a) <{axes = 1 : i64, size = 2 : i64, number "
                      "= 0 : i64}> "
                      "({\n" SF_SAMPLE_BODY("add") "  }) : (tensor<2x3x4xf32>) -> tensor<3x4xf32>",
               .results = "%r",
               .types = "tensor<3x4xf32>"},
};

const sf_opdef sf_op_all_to_all = {
    .name = "all_to_all",
    .dialect = "sheaf",
    .doc = "One row of the operand of each rank of a group.",
    .id = SF_OP_ALL_TO_ALL,
    .form = SF_FORM_GENERIC,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .attrs = moving_attrs,
    .nattrs = SF_COLLECTIVE_BODY,
    .infer = infer_all_to_all,
    .factors = factors_collective,
    .linear = sf_linear_first,
    .eval = eval_collective,
    .collective = SF_ALL_TO_ALL + 1,
    .sample =
        {.arguments = "%a: tensor<2x3x4xf32>",
         .use =
             "%r = \"sheaf.all_to_all\"(%a) <{axes = 1 : i64, size = 2 : i64, number = 0 : i64}> : "
             "(tensor<2x3x4xf32>) -> tensor<2x3x4xf32>",
         .results = "%r",
         .types = "tensor<2x3x4xf32>"},
};

const sf_opdef sf_op_permute = {
    .name = "permute",
    .dialect = "sheaf",
    .doc = "The operand of the rank whose coordinates along two axes are exchanged.",
    .id = SF_OP_PERMUTE,
    .form = SF_FORM_GENERIC,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .attrs = moving_attrs,
    .nattrs = SF_COLLECTIVE_BODY,
    .infer = infer_permute,
    .factors = factors_collective,
    .linear = sf_linear_first,
    .eval = eval_collective,
    .collective = SF_PERMUTE + 1,
    .sample =
        {.arguments = "%a: tensor<3x4xf32>",
         .use = "%r = \"sheaf.permute\"(%a) <{axes = 3 : i64, size = 4 : i64, number = 0 : i64}> : "
                "(tensor<3x4xf32>) -> tensor<3x4xf32>",
         .results = "%r",
         .types = "tensor<3x4xf32>"},
};
