/* gather: windows of the operand at computed places. */
#include "op/data_movement.h"
#include "op/indexing.h"
#include "op/slots.h"
#include "op/util.h"

#define NUMBERS .group = "dimension_numbers"

static const sf_attrdef gather_attrs[] = {
    [SF_INDEXING_WINDOW] = {.name = "offset_dims", NUMBERS, .kind = SF_ATTR_INTS},
    [SF_INDEXING_DROPPED] = {.name = "collapsed_slice_dims", NUMBERS, .kind = SF_ATTR_INTS},
    [SF_INDEXING_OPERAND_BATCH] = {.name = "operand_batching_dims", NUMBERS, .kind = SF_ATTR_INTS},
    [SF_INDEXING_INDICES_BATCH] = {.name = "start_indices_batching_dims",
                                   NUMBERS,
                                   .kind = SF_ATTR_INTS},
    [SF_INDEXING_MAP] = {.name = "start_index_map", NUMBERS, .kind = SF_ATTR_INTS},
    [SF_INDEXING_VECTOR_DIM] = {.name = "index_vector_dim", NUMBERS, .kind = SF_ATTR_INT},
    [SF_GATHER_SIZES] = {.name = "slice_sizes", .kind = SF_ATTR_INTS, .required = true},
    [SF_GATHER_SORTED] = {.name = "indices_are_sorted", .kind = SF_ATTR_INT, .text = SF_AS_BOOL},
};

static sf_status infer_gather(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *operand = op->in[0], *indices = op->in[1];
    sf_ints sizes = sf_op_ints(op, SF_GATHER_SIZES);
    sf_indexing indexing;
    SF_TRY(sf_indexing_check(op, operand, indices, &indexing, diag));
    if (sizes.count != operand->rank)
        return SF_OP_FAIL(op, diag, "slice_sizes has %d entries for an operand of rank %d",
                          sizes.count, operand->rank);
    int64_t dims[SF_MAX_RANK];
    for (int d = 0; d < operand->rank; d++) {
        int64_t size = sizes.at[d];
        if (size < 0 || size > operand->dims[d])
            return SF_OP_FAIL(op, diag,
                              "a slice of size %" PRId64 " from dimension %d of size %" PRId64,
                              size, d, operand->dims[d]);
        if (indexing.window_of[d] >= 0)
            dims[indexing.window_of[d]] = size;
        else if (size > 1)
            return SF_OP_FAIL(
                op, diag, "dimension %d has no place in the result, but a slice of size %" PRId64,
                d, size);
    }
    for (int p = 0; p < indexing.windowed_rank; p++)
        if (indexing.indices_of[p] >= 0)
            dims[p] = indices->dims[indexing.indices_of[p]];
    out[0] = sf_type_get(op->pool, operand->dtype, indexing.windowed_rank, dims);
    return out[0] ? SF_OK : SF_OP_FAIL(op, diag, "the result is too large");
}

/* Tensors: 0 operand, 1 indices, 2 result. */
static void operand_factor(const sf_op *op, const sf_indexing *indexing, int d, sf_factoring *out)
{
    const sf_type *operand = op->in[0];
    int64_t size = operand->dims[d], slice = sf_op_ints(op, SF_GATHER_SIZES).at[d];
    int window = indexing->window_of[d], batch = indexing->batch_of[d];
    if (batch >= 0 || (window >= 0 && slice == size)) {
        int factor = sf_factor_add(out, size, SF_MAP, SF_MONOID_NONE);
        sf_factor_walk(out, 0, d, factor);
        if (batch >= 0)
            sf_factor_walk(out, 1, batch, factor);
        sf_factor_walk(out, 2, batch >= 0 ? indexing->windowed_of[batch] : window, factor);
        return;
    }
    if (slice == 1 && indexing->start_of[d] >= 0) {
        /* A shard gives zeros for elements that it does not hold, so the sum of the shards is the
         * gather. */
        sf_monoid monoid = operand->dtype == SF_PRED ? SF_MONOID_OR : SF_MONOID_ADD;
        sf_factor_walk(out, 0, d, sf_factor_add(out, size, SF_REDUCE, monoid));
    } else {
        sf_factor_whole(out, 0, d, size);
    }
    if (window >= 0)
        sf_factor_whole(out, 2, window, slice);
}

static void factors_gather(const sf_op *op, sf_factoring *out)
{
    sf_indexing indexing = sf_indexing_get(op, op->in[0], op->in[1]);
    for (int d = 0; d < op->in[0]->rank; d++)
        operand_factor(op, &indexing, d, out);
    for (int q = 0; q < op->in[1]->rank; q++) {
        int64_t size = op->in[1]->dims[q];
        if (q == indexing.vector_dim) {
            sf_factor_whole(out, 1, q, size);
        } else if (!sf_has(sf_op_ints(op, SF_INDEXING_INDICES_BATCH), q)) {
            int factor = sf_factor_add(out, size, SF_MAP, SF_MONOID_NONE);
            sf_factor_walk(out, 1, q, factor);
            sf_factor_walk(out, 2, indexing.windowed_of[q], factor);
        }
    }
}

/* A window that covers a dimension covers the shard of it. */
static void localize_gather(const sf_op *op, const sf_type *const *pieces, const sf_attr **attrs)
{
    sf_indexing indexing = sf_indexing_get(op, op->in[0], op->in[1]);
    int64_t sizes[SF_MAX_RANK];
    for (int d = 0; d < op->in[0]->rank; d++) {
        sizes[d] = sf_op_ints(op, SF_GATHER_SIZES).at[d];
        if (indexing.window_of[d] >= 0 && sizes[d] == op->in[0]->dims[d])
            sizes[d] = pieces[0]->dims[d];
    }
    attrs[SF_GATHER_SIZES] = sf_attr_ints(op->pool, op->in[0]->rank, sizes);
}

/* Only the gathered elements are read. */
static double bytes_gather(const sf_op *op)
{
    return 2 * (double)sf_type_bytes(op->out[0]) + (double)sf_type_bytes(op->in[1]);
}

/* Moves one window. `start` is where it begins in the operand, per dim; `base` is the flat index
 * in the result of its first element. Elements that this shard of the operand does not hold stay
 * zero. */
static void take_window(const sf_indexing *indexing, const sf_tensor *operand, const int64_t *start,
                        int64_t base, sf_tensor *out, sf_copying *move)
{
    int next = 1;
    move->lists[0] = (sf_copy_list){1, move->lists[0].to, move->lists[0].from};
    move->lists[0].to[0] = base;
    move->lists[0].from[0] = 0;
    for (int d = 0; d < indexing->operand_rank; d++) {
        sf_tensor_side from = sf_tensor_side_of(operand, d);
        if (indexing->window_of[d] >= 0) {
            move->lists[next].count = 0;
            sf_copying_along(move, next++, sf_tensor_side_of(out, indexing->window_of[d]), from,
                             (sf_line){1, start[d], 1});
            continue;
        }
        int64_t local = sf_span_local(from.span, start[d]);
        if (local < 0)
            return;
        move->lists[0].from[0] += local * from.stride;
    }
    sf_copying_copy(move, operand, out);
}

static sf_status eval_gather(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    if (out->type->count == 0 || in[0].type->count == 0)
        return SF_OK;
    sf_indexing indexing = sf_indexing_get(op, op->in[0], op->in[1]);
    sf_ints sizes = sf_op_ints(op, SF_GATHER_SIZES);
    sf_mark mark = sf_arena_mark(&eval->scratch);

    /* List 0 of the move has the offset of a window, the others its dims. The points are the
     * indices of the result with its window dims left out. */
    int64_t capacity[SF_MAX_RANK + 1] = {1}, points[SF_MAX_RANK];
    int rank = 1;
    for (int p = 0; p < indexing.windowed_rank; p++) {
        points[p] = indexing.indices_of[p] < 0 ? 1 : out->type->dims[p];
        if (indexing.indices_of[p] < 0)
            capacity[rank++] = out->type->dims[p];
    }
    sf_copying move;
    sf_copying_init(&move, &eval->scratch, rank, capacity);
    int64_t index[SF_MAX_RANK] = {0}, point[SF_MAX_RANK], start[SF_MAX_RANK];
    do {
        for (int p = 0; p < indexing.windowed_rank; p++)
            point[p] = sf_span_global(sf_tensor_span(out, p), index[p]);
        sf_indexing_start(&indexing, &in[1], point, start);
        for (int d = 0; d < indexing.operand_rank; d++) {
            int64_t last = op->in[0]->dims[d] - sizes.at[d];
            if (indexing.batch_of[d] < 0)
                start[d] = start[d] < 0 ? 0 : start[d] > last ? last : start[d];
        }
        int64_t base = sf_flat_index(indexing.windowed_rank, out->type->dims, index);
        take_window(&indexing, &in[0], start, base, out, &move);
    } while (sf_next_index(indexing.windowed_rank, points, index));
    sf_arena_reset(&eval->scratch, mark);
    return SF_OK;
}

const sf_opdef sf_op_gather = {
    .name = "gather",
    .dialect = "stablehlo",
    .hlo = "gather",
    .doc = "Windows of the operand at computed indices, clamped to its bounds.",
    .id = SF_OP_GATHER,
    .form = SF_FORM_GENERIC,
    .min_operands = 2,
    .max_operands = 2,
    .nresults = 1,
    .attrs = gather_attrs,
    .nattrs = SF_GATHER_SLOTS,
    .group = "#stablehlo.gather",
    .infer = infer_gather,
    .factors = factors_gather,
    .linear = sf_linear_first,
    .local = localize_gather,
    .bytes = bytes_gather,
    .eval = eval_gather,
    .positional = true,
    .looks_up = true,
    .cost = SF_COST_LOOKUP,
    .sample =
        {.arguments = "%a: tensor<10x4xf32>, %i: tensor<3x1xi32>",
         .use = "%r = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = "
                "#stablehlo.gather<offset_dims = [1], "
                "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
                "indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<10x4xf32>, "
                "tensor<3x1xi32>) -> tensor<3x4xf32>",
         .results = "%r",
         .types = "tensor<3x4xf32>"},
};
