/* scatter: combines windows of updates into the operand at computed places. A window that does not
 * fit into the operand as a whole is dropped. */
#include "op/body.h"
#include "op/data_movement.h"
#include "op/indexing.h"
#include "op/slots.h"
#include "op/util.h"

enum { NATTRS = SF_SCATTER_BODY + 1 };

#define NUMBERS .group = "scatter_dimension_numbers"

static const sf_attrdef scatter_attrs[NATTRS] = {
    [SF_INDEXING_WINDOW] = {.name = "update_window_dims", NUMBERS, .kind = SF_ATTR_INTS},
    [SF_INDEXING_DROPPED] = {.name = "inserted_window_dims", NUMBERS, .kind = SF_ATTR_INTS},
    [SF_INDEXING_OPERAND_BATCH] = {.name = "input_batching_dims", NUMBERS, .kind = SF_ATTR_INTS},
    [SF_INDEXING_INDICES_BATCH] = {.name = "scatter_indices_batching_dims",
                                   NUMBERS,
                                   .kind = SF_ATTR_INTS},
    [SF_INDEXING_MAP] = {.name = "scatter_dims_to_operand_dims", NUMBERS, .kind = SF_ATTR_INTS},
    [SF_INDEXING_VECTOR_DIM] = {.name = "index_vector_dim", NUMBERS, .kind = SF_ATTR_INT},
    [SF_SCATTER_SORTED] = {.name = "indices_are_sorted", .kind = SF_ATTR_INT, .text = SF_AS_BOOL},
    [SF_SCATTER_UNIQUE] = {.name = "unique_indices", .kind = SF_ATTR_INT, .text = SF_AS_BOOL},
    [SF_SCATTER_BODY] = {.name = "body", .kind = SF_ATTR_INT, .derived = true},
};

/* Operands are N inputs, the indices, N updates. */
static int scattered_inputs(const sf_op *op)
{
    return (op->noperands - 1) / 2;
}

static sf_status check_types(const sf_op *op, sf_diag *diag)
{
    int n = scattered_inputs(op);
    if (op->noperands % 2 == 0 || op->nresults != n)
        return SF_OP_FAIL(op, diag, "%d operands and %d results do not go together", op->noperands,
                          op->nresults);
    for (int i = 0; i < n; i++) {
        if (!sf_same_shape(op->in[i], op->in[0]))
            return SF_OP_FAIL(op, diag, "operands 0 and %d differ in shape", i);
        if (!sf_same_shape(op->in[n + 1 + i], op->in[n + 1]))
            return SF_OP_FAIL(op, diag, "updates 0 and %d differ in shape", i);
        if (op->in[n + 1 + i]->dtype != op->in[i]->dtype)
            return SF_OP_FAIL(op, diag, "updates of %s for an operand of %s",
                              sf_dtype_get(op->in[n + 1 + i]->dtype)->name,
                              sf_dtype_get(op->in[i]->dtype)->name);
    }
    return SF_OK;
}

static sf_status check_updates(const sf_op *op, const sf_indexing *indexing, sf_diag *diag)
{
    const sf_type *operand = op->in[0], *indices = op->in[scattered_inputs(op)];
    const sf_type *updates = op->in[scattered_inputs(op) + 1];
    if (updates->rank != indexing->windowed_rank)
        return SF_OP_FAIL(op, diag, "updates of rank %d, expected %d", updates->rank,
                          indexing->windowed_rank);
    for (int p = 0; p < updates->rank; p++) {
        int q = indexing->indices_of[p];
        if (q >= 0 && updates->dims[p] != indices->dims[q])
            return SF_OP_FAIL(op, diag,
                              "dimension %d of the updates has size %" PRId64
                              ", that of the indices %" PRId64,
                              p, updates->dims[p], indices->dims[q]);
    }
    for (int d = 0; d < operand->rank; d++) {
        int p = indexing->window_of[d];
        if (p >= 0 && updates->dims[p] > operand->dims[d])
            return SF_OP_FAIL(op, diag,
                              "a window of size %" PRId64
                              " does not fit into dimension %d of size %" PRId64,
                              updates->dims[p], d, operand->dims[d]);
    }
    return SF_OK;
}

static sf_status infer_scatter(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    sf_indexing indexing;
    SF_TRY(check_types(op, diag));
    SF_TRY(sf_indexing_check(op, op->in[0], op->in[scattered_inputs(op)], &indexing, diag));
    SF_TRY(check_updates(op, &indexing, diag));
    /* Overwriting suits any type; it is no monoid to fold with, so the body check knows nothing of
     * it. */
    if (scattered_inputs(op) != 1 || sf_op_monoid(op, SF_SCATTER_BODY) != SF_MONOID_SECOND)
        SF_TRY(sf_check_body(op, SF_SCATTER_BODY, 0, scattered_inputs(op), diag));
    for (int i = 0; i < scattered_inputs(op); i++)
        out[i] = op->in[i];
    return SF_OK;
}

/* The order of updates does not matter, so they may be applied in parts. */
static bool monoid_commutes(sf_monoid monoid)
{
    return monoid != SF_MONOID_NONE && monoid != SF_MONOID_SECOND;
}

/* Walks dimension `dim` of `count` tensors from `first` on. */
static void walk_all(sf_factoring *out, int first, int count, int dim, int factor)
{
    for (int t = first; t < first + count; t++)
        sf_factor_walk(out, t, dim, factor);
}

/* An update falls into one shard of the operand when the window has one element there, at a
 * computable index, or when it is cut along with the operand. */
static sf_factor_role operand_role(const sf_op *op, const sf_indexing *indexing, int d)
{
    int window = indexing->window_of[d];
    int64_t size = window >= 0 ? op->in[scattered_inputs(op) + 1]->dims[window] : 1;
    bool is_point = size == 1 && indexing->start_of[d] >= 0;
    bool is_full = window >= 0 && size == op->in[0]->dims[d];
    return is_point || is_full || indexing->batch_of[d] >= 0 ? SF_MAP : SF_WHOLE;
}

static void factors_scatter(const sf_op *op, sf_factoring *out)
{
    int n = scattered_inputs(op), updates = n + 1, results = 2 * n + 1;
    sf_indexing indexing = sf_indexing_get(op, op->in[0], op->in[n]);
    for (int d = 0; d < op->in[0]->rank; d++) {
        int window = indexing.window_of[d], batch = indexing.batch_of[d];
        int factor =
            sf_factor_add(out, op->in[0]->dims[d], operand_role(op, &indexing, d), SF_MONOID_NONE);
        walk_all(out, 0, n, d, factor);
        walk_all(out, results, n, d, factor);
        if (batch >= 0) {
            sf_factor_walk(out, n, batch, factor);
            walk_all(out, updates, n, indexing.windowed_of[batch], factor);
        } else if (window >= 0) {
            int64_t size = op->in[updates]->dims[window];
            if (size != op->in[0]->dims[d])
                factor = sf_factor_add(out, size, SF_WHOLE, SF_MONOID_NONE);
            walk_all(out, updates, n, window, factor);
        }
    }
    sf_monoid monoid = sf_op_monoid(op, SF_SCATTER_BODY);
    for (int q = 0; q < op->in[n]->rank; q++) {
        int64_t size = op->in[n]->dims[q];
        if (q == indexing.vector_dim) {
            sf_factor_whole(out, n, q, size);
        } else if (!sf_has(sf_op_ints(op, SF_INDEXING_INDICES_BATCH), q)) {
            int factor = monoid_commutes(monoid)
                             ? sf_factor_add(out, size, SF_REDUCE, monoid)
                             : sf_factor_add(out, size, SF_WHOLE, SF_MONOID_NONE);
            sf_factor_walk(out, n, q, factor);
            walk_all(out, updates, n, indexing.windowed_of[q], factor);
        }
    }
}

static int linear_scatter(const sf_op *op, uint32_t masks[])
{
    if (sf_op_monoid(op, SF_SCATTER_BODY) != SF_MONOID_ADD)
        return 0;
    masks[0] = 1u << 0 | 1u << 2;
    return 1;
}

static double flops_scatter(const sf_op *op)
{
    double each = op->nregions > 0 ? op->regions[0]->nnodes : 1;
    if (sf_op_monoid(op, SF_SCATTER_BODY) == SF_MONOID_SECOND)
        each = 0;
    return each * (double)op->in[scattered_inputs(op) + 1]->count;
}

/* In place: updates are read and written, other elements of the operand are not touched. */
static double bytes_scatter(const sf_op *op)
{
    int n = scattered_inputs(op);
    double total = (double)sf_type_bytes(op->in[n]);
    for (int i = 0; i < n; i++)
        total += 2 * (double)sf_type_bytes(op->in[n + 1 + i]);
    return total;
}

/* The three ways to apply an update; each is a row of a move from the updates to the result. */

typedef struct combining {
    sf_monoid monoid;
    sf_dtype dtype;
    sf_word *result;
    const sf_word *updates;
} combining;

static void combine_update_row(void *context, const sf_copy_list *list, int64_t to, int64_t from)
{
    const combining *c = context;
    int parts = sf_parts_of(c->dtype);
    for (int64_t k = 0; k < list->count; k++)
        sf_words_combine(c->monoid, c->dtype, c->result + (to + list->to[k]) * parts,
                         c->updates + (from + list->from[k]) * parts);
}

typedef struct applying {
    sf_body body;
    int count;
    const sf_tensor *updates;
    sf_tensor *results;
    sf_status status;
} applying;

static void apply_row(void *context, const sf_copy_list *list, int64_t to, int64_t from)
{
    applying *a = context;
    for (int64_t k = 0; k < list->count && a->status == SF_OK; k++) {
        for (int i = 0; i < a->count; i++) {
            sf_body_set(&a->body, i, &a->results[i], to + list->to[k]);
            sf_body_set(&a->body, a->count + i, &a->updates[i], from + list->from[k]);
        }
        a->status = sf_body_step(&a->body);
        for (int i = 0; i < a->count && a->status == SF_OK; i++)
            sf_body_get(&a->body, i, &a->results[i], to + list->to[k]);
    }
}

/* Everything that a walk over the windows needs. */
typedef struct windows {
    const sf_op *op;
    sf_indexing indexing;
    const sf_tensor *indices, *updates;
    const sf_tensor *out;
    sf_copying move;
} windows;

static bool window_fits(const windows *w, const int64_t *start)
{
    const sf_type *operand = w->op->in[0], *updates = w->op->in[scattered_inputs(w->op) + 1];
    for (int d = 0; d < operand->rank; d++) {
        int p = w->indexing.window_of[d];
        int64_t size = p >= 0 ? updates->dims[p] : 1;
        if (start[d] < 0 || start[d] > operand->dims[d] - size)
            return false;
    }
    return true;
}

/* Sets the move for the window that begins at `start`; its first element is `base` of the updates.
 * False if no element of it falls into this shard of the result. List 0 has the offset. */
static bool aim_window(windows *w, const int64_t *start, int64_t base)
{
    int next = 1;
    sf_copying *move = &w->move;
    move->lists[0].count = 1;
    move->lists[0].to[0] = 0;
    move->lists[0].from[0] = base;
    for (int d = 0; d < w->indexing.operand_rank; d++) {
        sf_tensor_side to = sf_tensor_side_of(w->out, d);
        if (w->indexing.window_of[d] < 0) {
            int64_t local = sf_span_local(to.span, start[d]);
            if (local < 0)
                return false;
            move->lists[0].to[0] += local * to.stride;
            continue;
        }
        sf_tensor_side from = sf_tensor_side_of(w->updates, w->indexing.window_of[d]);
        sf_copy_list *list = &move->lists[next++];
        list->count = 0;
        for (int64_t i = 0; i < from.size; i++) {
            int64_t local = sf_span_local(to.span, start[d] + sf_span_global(from.span, i));
            if (local < 0)
                continue;
            list->to[list->count] = local * to.stride;
            list->from[list->count++] = i * from.stride;
        }
    }
    return true;
}

/* Calls `row` for the rows of all windows, in the order of the index vectors; copies instead when
 * `row` is NULL. */
static void each_window(sf_eval *eval, windows *w, sf_copying_row *row, void *context)
{
    const sf_type *type = w->updates->type;
    if (type->count == 0 || w->out->type->count == 0)
        return;
    int64_t capacity[SF_MAX_RANK + 1] = {1}, points[SF_MAX_RANK];
    int rank = 1;
    for (int p = 0; p < type->rank; p++) {
        points[p] = w->indexing.indices_of[p] < 0 ? 1 : type->dims[p];
        if (w->indexing.indices_of[p] < 0)
            capacity[rank++] = type->dims[p];
    }
    sf_copying_init(&w->move, &eval->scratch, rank, capacity);
    int64_t index[SF_MAX_RANK] = {0}, point[SF_MAX_RANK], start[SF_MAX_RANK];
    do {
        for (int p = 0; p < type->rank; p++)
            point[p] = sf_span_global(sf_tensor_span(w->updates, p), index[p]);
        sf_indexing_start(&w->indexing, w->indices, point, start);
        if (!window_fits(w, start) ||
            !aim_window(w, start, sf_flat_index(type->rank, type->dims, index)))
            continue;
        if (row) {
            sf_copying_each(&w->move, row, context);
        } else {
            sf_tensor out = *w->out;
            sf_copying_copy(&w->move, w->updates, &out);
        }
    } while (sf_next_index(type->rank, points, index));
}

/* The operand is counted once: by the shard that holds the first of the index vectors. The other
 * shards of a split over them start from the identity. */
static bool holds_first(const sf_indexing *indexing, const sf_op *op, const sf_tensor *indices)
{
    for (int q = 0; q < indices->type->rank; q++) {
        sf_span span = sf_tensor_span(indices, q);
        if (q != indexing->vector_dim && !sf_has(sf_op_ints(op, SF_INDEXING_INDICES_BATCH), q) &&
            span.whole > 0 && sf_span_local(span, 0) < 0)
            return false;
    }
    return true;
}

static void scatter_words(sf_eval *eval, windows *w, sf_monoid monoid, const sf_tensor *operand,
                          sf_tensor *out)
{
    sf_dtype dtype = out->type->dtype;
    combining c = {.monoid = monoid, .dtype = sf_sum_dtype(eval, dtype)};
    c.result = sf_words_load(&eval->scratch, operand, dtype);
    c.updates = sf_words_load(&eval->scratch, w->updates, dtype);
    if (!holds_first(&w->indexing, w->op, w->indices))
        for (int64_t i = 0; i < out->type->count; i++)
            sf_words_identity(monoid, dtype, c.result + i * sf_parts_of(dtype));
    each_window(eval, w, combine_update_row, &c);
    sf_words_store(out, c.result);
}

static sf_status eval_scatter(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    int n = scattered_inputs(op);
    sf_monoid monoid = sf_op_monoid(op, SF_SCATTER_BODY);
    sf_mark mark = sf_arena_mark(&eval->scratch);
    windows w = {.op = op,
                 .indexing = sf_indexing_get(op, op->in[0], op->in[n]),
                 .indices = &in[n],
                 .updates = &in[n + 1],
                 .out = &out[0]};
    sf_status status = SF_OK;
    if (monoid_commutes(monoid)) {
        scatter_words(eval, &w, monoid, &in[0], &out[0]);
    } else {
        for (int i = 0; i < n && out[i].type->count > 0; i++)
            memcpy(out[i].data, in[i].data, (size_t)sf_type_bytes(out[i].type));
        if (monoid == SF_MONOID_SECOND) {
            each_window(eval, &w, NULL, NULL);
        } else {
            applying a = {sf_body_new(eval, op, 0, n, n), n, &in[n + 1], out, SF_OK};
            each_window(eval, &w, apply_row, &a);
            status = a.status;
        }
    }
    sf_arena_reset(&eval->scratch, mark);
    return status;
}

const sf_opdef sf_op_scatter = {
    .name = "scatter",
    .dialect = "stablehlo",
    .hlo = "scatter",
    .doc = "The operand, with windows of updates combined into it at computed indices.",
    .id = SF_OP_SCATTER,
    .form = SF_FORM_GENERIC,
    .min_operands = 3,
    .max_operands = -1,
    .nresults = -1,
    .nregions = 1,
    .attrs = scatter_attrs,
    .nattrs = NATTRS,
    .group = "#stablehlo.scatter",
    .infer = infer_scatter,
    .factors = factors_scatter,
    .linear = linear_scatter,
    .flops = flops_scatter,
    .bytes = bytes_scatter,
    .eval = eval_scatter,
    .positional = true,
    .updates = true,
    .cost = SF_COST_LOOKUP,
    .scratch = sf_scratch_words_and_places,
    .sample = {.arguments = "%a: tensor<10x4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4xf32>",
               .use = "%r = \"stablehlo.scatter\"(%a, %i, %u) <{indices_are_sorted = false, "
                      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
                      "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                      "index_vector_dim = 1>, "
                      "unique_indices = false}> ({\n" SF_SAMPLE_BODY(
                          "add") "  }) : (tensor<10x4xf32>, tensor<3x1xi32>, "
                                 "tensor<3x4xf32>) -> tensor<10x4xf32>",
               .results = "%r",
               .types = "tensor<10x4xf32>"},
};
