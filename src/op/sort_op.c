/* sort and top_k. Both put an array of positions in order with one stable merge sort. */
#include <math.h>

#include "op/slots.h"
#include "op/util.h"

/* True when position a must come before position b. */
typedef bool precedes(void *context, int64_t a, int64_t b);

static void merge_runs(const int64_t *from, int64_t *to, int64_t first, int64_t middle, int64_t end,
                       precedes *before, void *context)
{
    int64_t left = first, right = middle;
    for (int64_t i = first; i < end; i++) {
        bool take_right =
            left == middle || (right < end && before(context, from[right], from[left]));
        to[i] = take_right ? from[right++] : from[left++];
    }
}

/* Sorts the positions 0 ... count - 1. Both arrays have room for `count`; returns the one that has
 * the order. Whatever `before` answers, the result is some permutation. */
static int64_t *sort_indices(int64_t count, int64_t *order, int64_t *spare, precedes *before,
                             void *context)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t first = 0; first < count; first += 2 * width) {
            int64_t middle = first + width < count ? first + width : count;
            int64_t end = middle + width < count ? middle + width : count;
            merge_runs(order, spare, first, middle, end, before, context);
        }
        int64_t *sorted = spare;
        spare = order;
        order = sorted;
    }
    return order;
}

static double sort_flops(const sf_op *op, int dim)
{
    double length = (double)op->in[0]->dims[dim];
    return length < 2 ? 0 : (double)op->in[0]->count * log2(length);
}

static char *element_of(const sf_tensor *tensor, int64_t index)
{
    return (char *)tensor->data + (size_t)index * sf_dtype_get(tensor->type->dtype)->bytes;
}

static void copy_sorted_element(const sf_tensor *from, int64_t source, sf_tensor *to,
                                int64_t target)
{
    memcpy(element_of(to, target), element_of(from, source), sf_dtype_get(to->type->dtype)->bytes);
}

/* sort */

/* The text must give the dimension: were it optional, absent would mean the last one, not 0. */
static const sf_attrdef sort_attrs[] = {
    [SF_SORT_DIMENSION] = {.name = "dimension",
                           .hlo = "dimensions",
                           .kind = SF_ATTR_INT,
                           .required = true},
    [SF_SORT_STABLE] = {.name = "is_stable", .kind = SF_ATTR_INT, .text = SF_AS_BOOL},
};

/* Negative dimensions count from the end. */
static int sort_dim(const sf_op *op)
{
    int64_t dim = sf_op_int(op, SF_SORT_DIMENSION, -1);
    return (int)(dim < 0 ? dim + op->in[0]->rank : dim);
}

/* The comparator takes a left and a right scalar per operand and gives a truth value. */
static sf_status check_comparator(const sf_op *op, sf_diag *diag)
{
    if (op->nregions != 1)
        return SF_OP_FAIL(op, diag, "the comparator is missing");
    const sf_block *block = op->regions[0];
    if (block->narguments != 2 * (uint32_t)op->noperands || block->nresults != 1)
        return SF_OP_FAIL(op, diag,
                          "the comparator has %" PRIu32 " arguments and %" PRIu32
                          " results, expected %d and 1",
                          block->narguments, block->nresults, 2 * op->noperands);
    for (uint32_t i = 0; i < block->narguments; i++) {
        const sf_type *type = sf_type_of(op->graph, block->arguments[i]);
        if (type->rank != 0 || type->dtype != op->in[i / 2]->dtype)
            return SF_OP_FAIL(op, diag, "argument %" PRIu32 " of the comparator must be tensor<%s>",
                              i, sf_dtype_get(op->in[i / 2]->dtype)->name);
    }
    const sf_type *result = sf_type_of(op->graph, block->results[0]);
    if (result->rank != 0 || result->dtype != SF_PRED)
        return SF_OP_FAIL(op, diag, "the result of the comparator must be tensor<i1>");
    return SF_OK;
}

static sf_status sort_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    int rank = op->in[0]->rank;
    int64_t dim = sf_op_int(op, SF_SORT_DIMENSION, -1);
    if (dim < -rank || dim >= rank)
        return SF_OP_FAIL(op, diag, "dimension %" PRId64 " of operands of rank %d", dim, rank);
    if (op->nresults != op->noperands)
        return SF_OP_FAIL(op, diag, "%d operands, but %d results", op->noperands, op->nresults);
    for (int i = 0; i < op->noperands; i++) {
        SF_TRY(sf_check_same_shape(op, 0, i, diag));
        out[i] = op->in[i];
    }
    return check_comparator(op, diag);
}

static void sort_factors(const sf_op *op, sf_factoring *out)
{
    for (int d = 0; d < op->in[0]->rank; d++) {
        int factor = sf_factor_add(out, op->in[0]->dims[d], d == sort_dim(op) ? SF_WHOLE : SF_MAP,
                                   SF_MONOID_NONE);
        for (int t = 0; t < op->noperands + op->nresults; t++)
            sf_factor_walk(out, t, d, factor);
    }
}

static double sort_op_flops(const sf_op *op)
{
    return sort_flops(op, sort_dim(op));
}

/* One line being sorted: its elements lie at base, base + stride, ... of every operand. */
typedef struct line {
    sf_eval *eval;
    const sf_op *op;
    const sf_tensor *in;
    int64_t base, stride;
    sf_tensor *arguments; /* of the comparator: left and right of each operand */
    sf_tensor result;
    sf_status status;
} line;

static bool compare_keys(void *context, int64_t a, int64_t b)
{
    line *at = context;
    if (at->status != SF_OK)
        return false;
    for (int i = 0; i < at->op->noperands; i++) {
        at->arguments[2 * i].data = element_of(&at->in[i], at->base + a * at->stride);
        at->arguments[2 * i + 1].data = element_of(&at->in[i], at->base + b * at->stride);
    }
    at->status = sf_eval_block(at->eval, at->op->regions[0], at->arguments, &at->result);
    return at->status == SF_OK && sf_get_i64(&at->result, 0) != 0;
}

static sf_status sort_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    const sf_type *type = out[0].type;
    const sf_block *block = op->regions[0];
    if (type->count == 0)
        return SF_OK;
    int dim = sort_dim(op);
    sf_mark mark = sf_arena_mark(&eval->scratch);
    int64_t size = type->dims[dim], *order = SF_ARRAY(&eval->scratch, size, int64_t);
    int64_t *spare = SF_ARRAY(&eval->scratch, size, int64_t);
    line at = {.eval = eval, .op = op, .in = in, .stride = 1};
    for (int d = dim + 1; d < type->rank; d++)
        at.stride *= type->dims[d];
    at.arguments = SF_ARRAY(&eval->scratch, 2 * op->noperands, sf_tensor);
    for (int i = 0; i < 2 * op->noperands; i++)
        at.arguments[i].type = sf_type_of(op->graph, block->arguments[i]);
    at.result.type = sf_type_of(op->graph, block->results[0]);
    at.result.data = sf_arena_alloc(&eval->scratch, sizeof(uint64_t));
    for (int64_t i = 0; i < type->count / size && at.status == SF_OK; i++) {
        at.base = i / at.stride * at.stride * size + i % at.stride;
        const int64_t *sorted = sort_indices(size, order, spare, compare_keys, &at);
        for (int t = 0; t < op->noperands; t++)
            for (int64_t k = 0; k < size; k++)
                copy_sorted_element(&in[t], at.base + sorted[k] * at.stride, &out[t],
                                    at.base + k * at.stride);
    }
    sf_arena_reset(&eval->scratch, mark);
    return at.status;
}

const sf_opdef sf_op_sort = {
    .name = "sort",
    .dialect = "stablehlo",
    .hlo = "sort",
    .doc = "The operands, sorted together along one dimension by a comparator.",
    .id = SF_OP_SORT,
    .form = SF_FORM_GENERIC,
    .min_operands = 1,
    .max_operands = -1,
    .nresults = -1,
    .nregions = 1,
    .attrs = sort_attrs,
    .nattrs = 2,
    .infer = sort_infer,
    .factors = sort_factors,
    .flops = sort_op_flops,
    .eval = sort_eval,
    .cost = SF_COST_HEAVY,
    .sample =
        {.arguments = "%a: tensor<3x4xf32>",
         .use = "%r = \"stablehlo.sort\"(%a) <{dimension = 1 : i64, is_stable = true}> ({\n"
                "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
                "    %z = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> "
                "tensor<i1>\n"
                "    stablehlo.return %z : tensor<i1>\n"
                "  }) : (tensor<3x4xf32>) -> tensor<3x4xf32>",
         .results = "%r",
         .types = "tensor<3x4xf32>"},
};

/* top_k */

enum { TOP_K };

static const sf_attrdef top_k_attrs[] = {
    [TOP_K] = {.name = "k", .kind = SF_ATTR_INT, .required = true},
};

static sf_status top_k_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *in = op->in[0];
    int64_t k = sf_op_int(op, TOP_K, 0), dims[SF_MAX_RANK];
    if (in->rank == 0)
        return SF_OP_FAIL(op, diag, "the operand must have a dimension");
    if (sf_is_complex(in->dtype))
        return SF_OP_FAIL(op, diag, "not defined on elements of type %s",
                          sf_dtype_get(in->dtype)->name);
    if (k < 0 || k > in->dims[in->rank - 1])
        return SF_OP_FAIL(op, diag, "the first %" PRId64 " of %" PRId64 " elements", k,
                          in->dims[in->rank - 1]);
    memcpy(dims, in->dims, (size_t)in->rank * sizeof *dims);
    dims[in->rank - 1] = k;
    out[0] = sf_type_get(op->pool, in->dtype, in->rank, dims);
    out[1] = sf_type_get(op->pool, SF_S32, in->rank, dims);
    return out[0] && out[1] ? SF_OK : SF_OP_FAIL(op, diag, "the result is too large");
}

/* Tensors: 0 operand, 1 values, 2 indices. */
static void top_k_factors(const sf_op *op, sf_factoring *out)
{
    int last = op->in[0]->rank - 1;
    for (int d = 0; d < last; d++) {
        int factor = sf_factor_add(out, op->in[0]->dims[d], SF_MAP, SF_MONOID_NONE);
        for (int t = 0; t < 3; t++)
            sf_factor_walk(out, t, d, factor);
    }
    sf_factor_whole(out, 0, last, op->in[0]->dims[last]);
    int factor = sf_factor_add(out, op->out[0]->dims[last], SF_WHOLE, SF_MONOID_NONE);
    sf_factor_walk(out, 1, last, factor);
    sf_factor_walk(out, 2, last, factor);
}

static double top_k_flops(const sf_op *op)
{
    return sort_flops(op, op->in[0]->rank - 1);
}

static bool greater_bits(void *context, int64_t a, int64_t b)
{
    const int64_t *keys = context;
    return keys[a] > keys[b];
}

static sf_status top_k_eval(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    (void)op;
    const sf_type *from = in[0].type, *to = out[0].type;
    if (to->count == 0)
        return SF_OK;
    int64_t size = from->dims[from->rank - 1], k = to->dims[to->rank - 1];
    sf_mark mark = sf_arena_mark(&eval->scratch);
    int64_t *order = SF_ARRAY(&eval->scratch, size, int64_t);
    int64_t *spare = SF_ARRAY(&eval->scratch, size, int64_t);
    int64_t *keys = SF_ARRAY(&eval->scratch, size, int64_t);
    for (int64_t row = 0; row < to->count / k; row++) {
        for (int64_t i = 0; i < size; i++)
            keys[i] = sf_total_order(&in[0], row * size + i);
        const int64_t *sorted = sort_indices(size, order, spare, greater_bits, keys);
        for (int64_t i = 0; i < k; i++) {
            copy_sorted_element(&in[0], row * size + sorted[i], &out[0], row * k + i);
            sf_store_i64(SF_S32, out[1].data, row * k + i, sorted[i]);
        }
    }
    sf_arena_reset(&eval->scratch, mark);
    return SF_OK;
}

const sf_opdef sf_op_top_k = {
    .name = "top_k",
    .dialect = "chlo",
    .hlo = "topk",
    .doc = "The k largest elements along the last dimension, and their indices.",
    .id = SF_OP_TOP_K,
    .form = SF_FORM_PAREN,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 2,
    .attrs = top_k_attrs,
    .nattrs = 1,
    .infer = top_k_infer,
    .factors = top_k_factors,
    .flops = top_k_flops,
    .eval = top_k_eval,
    .sample =
        {.arguments = "%a: tensor<3x8xf32>",
         .use =
             "%r:2 = chlo.top_k(%a, k = 2) : tensor<3x8xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)",
         .results = "%r#0, %r#1",
         .types = "tensor<3x2xf32>, tensor<3x2xi32>"},
};
