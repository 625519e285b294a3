/* reduce: folds dimensions away, in index order, starting from the initial value. */
#include "op/body.h"
#include "op/slots.h"
#include "op/util.h"

enum { NATTRS = SF_REDUCE_BODY + 1 };

static const sf_attrdef attrs[NATTRS] = {
    [SF_REDUCE_DIMENSIONS] = {.name = "dimensions", .kind = SF_ATTR_INTS, .required = true},
    [SF_REDUCE_BODY] = {.name = "body", .kind = SF_ATTR_INT, .derived = true},
};

static sf_status infer_reduce(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    int count = op->noperands / 2, rank = 0;
    sf_ints reduced = sf_op_ints(op, SF_REDUCE_DIMENSIONS);
    const sf_type *input = op->in[0];
    SF_TRY(sf_check_fold(op, count, diag));
    SF_TRY(sf_check_dims(op, reduced, input->rank, "dimensions", diag));
    SF_TRY(sf_check_body(op, SF_REDUCE_BODY, 0, count, diag));
    int64_t dims[SF_MAX_RANK];
    for (int i = 0; i < input->rank; i++)
        if (!sf_has(reduced, i))
            dims[rank++] = input->dims[i];
    for (int i = 0; i < count; i++) {
        out[i] = sf_type_get(op->pool, op->in[i]->dtype, rank, dims);
        if (!out[i])
            return SF_OP_FAIL(op, diag, "the result is too large");
    }
    return SF_OK;
}

static void factors_reduce(const sf_op *op, sf_factoring *out)
{
    int count = op->nresults, at = 0;
    sf_monoid monoid = sf_op_monoid(op, SF_REDUCE_BODY);
    sf_ints reduced = sf_op_ints(op, SF_REDUCE_DIMENSIONS);
    /* Shards are combined in any order, so the body must be a known monoid. */
    bool splits = monoid != SF_MONOID_NONE;
    for (int d = 0; d < op->in[0]->rank; d++) {
        bool gone = sf_has(reduced, d);
        sf_factor_role role = !gone ? SF_MAP : splits ? SF_REDUCE : SF_WHOLE;
        int factor = sf_factor_add(out, op->in[0]->dims[d], role,
                                   role == SF_REDUCE ? monoid : SF_MONOID_NONE);
        for (int i = 0; i < count; i++) {
            sf_factor_walk(out, i, d, factor);
            if (!gone)
                sf_factor_walk(out, 2 * count + i, at, factor);
        }
        at += !gone;
    }
}

/* A partial sum of the input needs a partial initial value, or that is added several times. */
static int linear_reduce(const sf_op *op, uint32_t masks[])
{
    if (sf_op_monoid(op, SF_REDUCE_BODY) != SF_MONOID_ADD)
        return 0;
    masks[0] = 3;
    return 1;
}

static double flops_reduce(const sf_op *op)
{
    return (double)op->in[0]->count * op->nresults;
}

/* How the flat index of the result moves with each dimension of the input: 0 for reduced ones. */
static void result_steps(const sf_op *op, const sf_type *input, int64_t *steps)
{
    sf_ints reduced = sf_op_ints(op, SF_REDUCE_DIMENSIONS);
    int64_t step = 1;
    for (int d = input->rank - 1; d >= 0; d--) {
        bool gone = sf_has(reduced, d);
        steps[d] = gone ? 0 : step;
        step *= gone ? 1 : input->dims[d];
    }
}

/* Folds `count` elements into a result that moves by `step`, 0 or 1. */
static void reduce_row(sf_monoid monoid, sf_dtype dtype, int64_t count, const sf_word *row,
                       int64_t step, sf_word *result)
{
    if (monoid != SF_MONOID_ADD || (sf_is_inexact(dtype) && dtype != SF_F64)) {
        int parts = sf_parts_of(dtype);
        for (int64_t i = 0; i < count; i++)
            sf_words_combine(monoid, dtype, result + i * step * parts, row + i * parts);
    } else if (!sf_is_float(dtype)) {
        for (int64_t i = 0; i < count; i++)
            result[i * step].integer += row[i].integer;
    } else if (step == 0) {
        double sum = result->real;
        for (int64_t i = 0; i < count; i++)
            sum += row[i].real;
        result->real = sum;
    } else {
        for (int64_t i = 0; i < count; i++)
            result[i].real += row[i].real;
    }
}

/* Whether this shard is the one that counts the initial value: the one with the first elements. */
static bool has_first(const sf_op *op, const sf_tensor *input)
{
    sf_ints reduced = sf_op_ints(op, SF_REDUCE_DIMENSIONS);
    for (int i = 0; i < reduced.count; i++) {
        int d = (int)reduced.at[i];
        if (op->in[0]->dims[d] != 0 && sf_span_local(sf_tensor_span(input, d), 0) < 0)
            return false;
    }
    return true;
}

static void reduce_by_monoid(sf_eval *eval, const sf_op *op, sf_monoid monoid, const sf_tensor *in,
                             sf_tensor *out)
{
    sf_arena *arena = &eval->scratch;
    sf_dtype dtype = sf_sum_dtype(eval, in[0].type->dtype);
    const sf_type *type = in[0].type;
    int parts = sf_parts_of(dtype); /* words of an element */
    sf_word *start = sf_words_load(arena, &in[1], dtype);
    if (!has_first(op, &in[0]))
        sf_words_identity(monoid, type->dtype, start);
    sf_word *words = sf_words_load(arena, &in[0], dtype);
    sf_word *results = SF_ARRAY(arena, out->type->count * parts, sf_word);
    for (int64_t i = 0; i < out->type->count * parts; i++)
        results[i] = start[i % parts];

    int64_t steps[SF_MAX_RANK], index[SF_MAX_RANK] = {0};
    int outer = type->rank - 1;
    int64_t row = type->rank == 0 ? 1 : type->dims[outer];
    int64_t row_step = 0;
    result_steps(op, type, steps);
    if (type->rank > 0)
        row_step = steps[outer];
    for (int64_t at = 0; at < type->count; at += row) {
        int64_t to = 0;
        for (int d = 0; d < outer; d++)
            to += index[d] * steps[d];
        reduce_row(monoid, dtype, row, words + at * parts, row_step, results + to * parts);
        sf_next_index(outer, type->dims, index);
    }
    sf_words_store(out, results);
}

static sf_status reduce_by_region(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                  sf_tensor *out)
{
    int count = op->nresults;
    sf_body body = sf_body_new(eval, op, 0, count, count);
    const sf_type *type = in[0].type;
    int64_t steps[SF_MAX_RANK], index[SF_MAX_RANK] = {0};
    result_steps(op, type, steps);
    for (int i = 0; i < count; i++) {
        sf_body_set(&body, i, &in[count + i], 0);
        for (int64_t j = 0; j < out[i].type->count; j++)
            sf_body_get(&body, i, &out[i], j);
    }
    for (int64_t at = 0; at < type->count; at++) {
        int64_t to = 0;
        for (int d = 0; d < type->rank; d++)
            to += index[d] * steps[d];
        for (int i = 0; i < count; i++) {
            sf_body_set(&body, i, &out[i], to);
            sf_body_set(&body, count + i, &in[i], at);
        }
        SF_TRY(sf_body_step(&body));
        for (int i = 0; i < count; i++)
            sf_body_get(&body, i, &out[i], to);
        sf_next_index(type->rank, type->dims, index);
    }
    return SF_OK;
}

static sf_status eval_reduce(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    sf_mark mark = sf_arena_mark(&eval->scratch);
    sf_monoid monoid = sf_op_monoid(op, SF_REDUCE_BODY);
    sf_status status = SF_OK;
    if (monoid == SF_MONOID_NONE)
        status = reduce_by_region(eval, op, in, out);
    else
        reduce_by_monoid(eval, op, monoid, in, out);
    sf_arena_reset(&eval->scratch, mark);
    return status;
}

const sf_opdef sf_op_reduce = {
    .name = "reduce",
    .dialect = "stablehlo",
    .hlo = "reduce",
    .doc = "Reduces the elements along some dimensions with a region, from an initial value.",
    .id = SF_OP_REDUCE,
    .form = SF_FORM_REDUCE,
    .min_operands = 2,
    .max_operands = -1,
    .nresults = -1,
    .nregions = 1,
    .attrs = attrs,
    .nattrs = NATTRS,
    .infer = infer_reduce,
    .factors = factors_reduce,
    .linear = linear_reduce,
    .flops = flops_reduce,
    .eval = eval_reduce,
    .scratch = sf_scratch_words_and_places,
    .sample =
        {.arguments = "%a: tensor<3x4xf32>, %b: tensor<f32>",
         .use =
             "%r = stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [1] : "
             "(tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>",
         .results = "%r",
         .types = "tensor<3xf32>"},
};
