/* Control flow and calls: call, case, optimization_barrier, while. */
#include <limits.h>

#include "op/body.h"
#include "op/control/nested.h"
#include "op/slots.h"
#include "op/util.h"

static sf_status infer_declared(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    if (op->nresults > 0 && !op->out)
        return SF_OP_FAIL(op, diag, "the types of the results must be declared");
    for (int i = 0; i < op->nresults; i++)
        out[i] = op->out[i];
    return SF_OK;
}

/* call */

static const sf_attrdef call_attrs[] = {
    [SF_CALL_CALLEE] = {.name = "callee",
                        .hlo = "to_apply",
                        .kind = SF_ATTR_TEXT,
                        .text = SF_AS_SYMBOL,
                        .required = true},
};

static sf_status eval_call(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)in, (void)out;
    return sf_fail(eval->diag, SF_EINPUT, op->loc,
                   "call of @%s: import should have put the function in its place",
                   sf_op_text(op, SF_CALL_CALLEE));
}

const sf_opdef sf_op_call = {
    .name = "call",
    .dialect = "stablehlo",
    .hlo = "call",
    .doc = "The results of a function. Import inlines it.",
    .id = SF_OP_CALL,
    .form = SF_FORM_CALL,
    .min_operands = 0,
    .max_operands = -1,
    .nresults = -1,
    .attrs = call_attrs,
    .nattrs = sizeof call_attrs / sizeof *call_attrs,
    .infer = infer_declared,
    .factors = sf_factors_whole,
    .eval = eval_call,
};

/* case */

static sf_status infer_case(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    if (op->in[0]->rank != 0 || op->in[0]->dtype != SF_S32)
        return SF_OP_FAIL(op, diag, "the index is no tensor<i32>");
    if (op->nregions < 1)
        return SF_OP_FAIL(op, diag, "has no branch");
    if (op->regions[0]->nresults != (uint32_t)op->nresults)
        return SF_OP_FAIL(op, diag, "branch 0 has %" PRIu32 " results, expected %d",
                          op->regions[0]->nresults, op->nresults);
    for (int i = 0; i < op->nresults; i++)
        out[i] = sf_type_of(op->graph, op->regions[0]->results[i]);
    for (int r = 0; r < op->nregions; r++)
        SF_TRY(sf_check_block(op, r, op->noperands - 1, op->in + 1, op->nresults, out, diag));
    return SF_OK;
}

static sf_status eval_case(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    int64_t index = sf_get_i64(&in[0], 0);
    /* An index that is out of range takes the last branch. */
    if (index < 0 || index >= op->nregions)
        index = op->nregions - 1;
    return sf_eval_block(eval, op->regions[index], in + 1, out);
}

const sf_opdef sf_op_case = {
    .name = "case",
    .dialect = "stablehlo",
    .hlo = "conditional",
    .doc = "The results of the branch that the index selects.",
    .id = SF_OP_CASE,
    .form = SF_FORM_GENERIC,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = -1,
    .nregions = INT_MAX,
    .control = SF_CONTROL_BRANCH,
    .infer = infer_case,
    .factors = sf_factors_nested,
    .eval = eval_case,
    .cost = SF_COST_HEAVY,
};

/* optimization_barrier */

static sf_status infer_barrier(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    if (op->nresults != op->noperands)
        return SF_OP_FAIL(op, diag, "has %d operands but %d results", op->noperands, op->nresults);
    for (int i = 0; i < op->nresults; i++)
        out[i] = op->in[i];
    return SF_OK;
}

static void barrier_factors(const sf_op *op, sf_factoring *out)
{
    for (int i = 0; i < op->noperands; i++)
        for (int d = 0; d < op->in[i]->rank; d++) {
            int factor = sf_factor_add(out, op->in[i]->dims[d], SF_MAP, SF_MONOID_NONE);
            sf_factor_walk(out, i, d, factor);
            sf_factor_walk(out, op->noperands + i, d, factor);
        }
}

static sf_status eval_barrier(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)eval;
    for (int i = 0; i < op->noperands; i++)
        if (in[i].type->count > 0)
            memcpy(out[i].data, in[i].data, (size_t)sf_type_bytes(in[i].type));
    return SF_OK;
}

const sf_opdef sf_op_optimization_barrier = {
    .name = "optimization_barrier",
    .dialect = "stablehlo",
    .hlo = "opt-barrier",
    .doc = "The operands, unchanged. No op moves across it.",
    .id = SF_OP_OPTIMIZATION_BARRIER,
    .form = SF_FORM_OPERANDS,
    .min_operands = 0,
    .max_operands = -1,
    .nresults = -1,
    .infer = infer_barrier,
    .factors = barrier_factors,
    .linear = sf_linear_all,
    .eval = eval_barrier,
    .sample = {.arguments = "%a: tensor<3x4xf32>",
               .use = "%r = stablehlo.optimization_barrier %a : tensor<3x4xf32>",
               .results = "%r",
               .types = "tensor<3x4xf32>"},
};

/* while */

enum { CONDITION, BODY };

/* How often it runs, if import derived it, else the user's estimate. The condition decides, so
 * these are only notes. */
static const sf_attrdef while_attrs[] = {
    [SF_WHILE_TRIPS] = {.name = "trip_count", .kind = SF_ATTR_INT, .derived = true, .note = true},
    [SF_WHILE_SAID] = {.name = "said_count", .kind = SF_ATTR_INT, .derived = true, .note = true},
};

static sf_status infer_while(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    if (op->nregions != 2)
        return SF_OP_FAIL(op, diag, "has %d regions, expected a condition and a body",
                          op->nregions);
    if (op->nresults > op->noperands)
        return SF_OP_FAIL(op, diag, "has %d operands but %d results", op->noperands, op->nresults);
    const sf_type *decision = sf_type_scalar(op->pool, SF_PRED);
    SF_TRY(sf_check_block(op, CONDITION, op->noperands, op->in, 1, &decision, diag));
    SF_TRY(sf_check_block(op, BODY, op->noperands, op->in, op->nresults, op->in, diag));
    for (int i = 0; i < op->nresults; i++)
        out[i] = op->in[i];
    return SF_OK;
}

static void copy_results(int count, sf_tensor *to, const sf_tensor *from)
{
    for (int i = 0; i < count; i++)
        if (from[i].type->count > 0)
            memcpy(to[i].data, from[i].data, (size_t)sf_type_bytes(from[i].type));
}

static sf_status eval_while(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    int count = op->nresults;
    sf_arena *arena = &eval->scratch;
    sf_mark mark = sf_arena_mark(arena);
    sf_tensor decision = {.type = sf_type_scalar(op->pool, SF_PRED),
                          .data = sf_arena_alloc(arena, 1)};
    sf_tensor *next = SF_ARRAY(arena, count, sf_tensor);
    sf_tensor *arguments = SF_ARRAY(arena, op->noperands, sf_tensor);
    for (int i = 0; i < op->noperands; i++)
        arguments[i] = i < count ? out[i] : in[i];
    for (int i = 0; i < count; i++) {
        next[i].type = in[i].type;
        next[i].data = sf_arena_alloc(arena, (size_t)sf_type_bytes(in[i].type));
    }
    copy_results(count, out, in);
    sf_status status;
    for (;;) {
        status = sf_eval_block(eval, op->regions[CONDITION], arguments, &decision);
        if (status != SF_OK || sf_get_i64(&decision, 0) == 0)
            break;
        status = sf_eval_block(eval, op->regions[BODY], arguments, next);
        if (status != SF_OK)
            break;
        copy_results(count, out, next);
    }
    sf_arena_reset(arena, mark);
    return status;
}

/* The next values. */
static double scratch_while(const sf_op *op)
{
    double bytes = (double)op->noperands * sizeof(sf_tensor);
    for (int i = 0; i < op->noperands; i++)
        bytes += (double)sf_type_bytes(op->in[i]) + 16;
    return bytes;
}

const sf_opdef sf_op_while = {
    .name = "while",
    .dialect = "stablehlo",
    .hlo = "while",
    .doc = "The loop-carried values after the body ran as long as the condition held.",
    .id = SF_OP_WHILE,
    .form = SF_FORM_WHILE,
    .min_operands = 0,
    .max_operands = -1,
    .nresults = -1,
    .nregions = 2,
    .control = SF_CONTROL_LOOP,
    .attrs = while_attrs,
    .nattrs = sizeof while_attrs / sizeof *while_attrs,
    .infer = infer_while,
    .factors = sf_factors_nested,
    .eval = eval_while,
    .cost = SF_COST_HEAVY,
    .scratch = scratch_while,
};
