#include "op/indexing.h"

#include "op/data_movement.h"
#include "op/slots.h"
#include "op/util.h"

static sf_status check_indexing_list(const sf_op *op, int slot, int rank, bool sorted,
                                     sf_diag *diag)
{
    sf_ints dims = sf_op_ints(op, slot);
    const char *name = op->def->attrs[slot].name;
    SF_TRY(sf_check_dims(op, dims, rank, name, diag));
    for (int i = 1; sorted && i < dims.count; i++)
        if (dims.at[i] < dims.at[i - 1])
            return SF_OP_FAIL(op, diag, "%s is not in ascending order", name);
    return SF_OK;
}

static sf_status check_disjoint(const sf_op *op, int slot, int other, sf_diag *diag)
{
    sf_ints dims = sf_op_ints(op, slot);
    for (int i = 0; i < dims.count; i++)
        if (sf_has(sf_op_ints(op, other), dims.at[i]))
            return SF_OP_FAIL(op, diag, "dimension %" PRId64 " is both in %s and in %s", dims.at[i],
                              op->def->attrs[slot].name, op->def->attrs[other].name);
    return SF_OK;
}

static sf_status check_indices(const sf_op *op, const sf_type *indices, sf_diag *diag)
{
    sf_class class = sf_dtype_get(indices->dtype)->class;
    int64_t vector = sf_op_int(op, SF_INDEXING_VECTOR_DIM, 0);
    int components = sf_op_ints(op, SF_INDEXING_MAP).count;
    if (class != SF_SIGNED && class != SF_UNSIGNED)
        return SF_OP_FAIL(op, diag, "the indices are of %s, not integers",
                          sf_dtype_get(indices->dtype)->name);
    if (vector < 0 || vector > indices->rank)
        return SF_OP_FAIL(op, diag, "index_vector_dim is %" PRId64 " for indices of rank %d",
                          vector, indices->rank);
    int64_t have = vector < indices->rank ? indices->dims[vector] : 1;
    if (have != components)
        return SF_OP_FAIL(op, diag, "index vectors of length %" PRId64 ", but %s has %d entries",
                          have, op->def->attrs[SF_INDEXING_MAP].name, components);
    if (sf_has(sf_op_ints(op, SF_INDEXING_INDICES_BATCH), vector))
        return SF_OP_FAIL(op, diag, "index_vector_dim is also in %s",
                          op->def->attrs[SF_INDEXING_INDICES_BATCH].name);
    return SF_OK;
}

static sf_status check_batches(const sf_op *op, const sf_type *operand, const sf_type *indices,
                               sf_diag *diag)
{
    sf_ints a = sf_op_ints(op, SF_INDEXING_OPERAND_BATCH);
    sf_ints b = sf_op_ints(op, SF_INDEXING_INDICES_BATCH);
    if (a.count != b.count)
        return SF_OP_FAIL(op, diag, "%d batching dimensions of the operand, %d of the indices",
                          a.count, b.count);
    for (int i = 0; i < a.count; i++)
        if (operand->dims[a.at[i]] != indices->dims[b.at[i]])
            return SF_OP_FAIL(
                op, diag, "batching dimensions of size %" PRId64 " and %" PRId64 " belong together",
                operand->dims[a.at[i]], indices->dims[b.at[i]]);
    return SF_OK;
}

sf_status sf_indexing_check(const sf_op *op, const sf_type *operand, const sf_type *indices,
                            sf_indexing *out, sf_diag *diag)
{
    SF_TRY(check_indexing_list(op, SF_INDEXING_DROPPED, operand->rank, true, diag));
    SF_TRY(check_indexing_list(op, SF_INDEXING_OPERAND_BATCH, operand->rank, true, diag));
    SF_TRY(check_indexing_list(op, SF_INDEXING_INDICES_BATCH, indices->rank, false, diag));
    SF_TRY(check_indexing_list(op, SF_INDEXING_MAP, operand->rank, false, diag));
    SF_TRY(check_disjoint(op, SF_INDEXING_DROPPED, SF_INDEXING_OPERAND_BATCH, diag));
    SF_TRY(check_disjoint(op, SF_INDEXING_MAP, SF_INDEXING_OPERAND_BATCH, diag));
    SF_TRY(check_indices(op, indices, diag));
    SF_TRY(check_batches(op, operand, indices, diag));
    int window = sf_op_ints(op, SF_INDEXING_WINDOW).count;
    int others =
        sf_op_ints(op, SF_INDEXING_DROPPED).count + sf_op_ints(op, SF_INDEXING_OPERAND_BATCH).count;
    if (window != operand->rank - others)
        return SF_OP_FAIL(op, diag,
                          "%s has %d entries, but %d dimensions of the operand have a window",
                          op->def->attrs[SF_INDEXING_WINDOW].name, window, operand->rank - others);
    bool has_vector = sf_op_int(op, SF_INDEXING_VECTOR_DIM, 0) < indices->rank;
    int rank = window + indices->rank - has_vector;
    if (rank > SF_MAX_RANK)
        return SF_OP_FAIL(op, diag, "window and indices make a rank of %d; %d is the most", rank,
                          SF_MAX_RANK);
    SF_TRY(check_indexing_list(op, SF_INDEXING_WINDOW, rank, true, diag));
    *out = sf_indexing_get(op, operand, indices);
    return SF_OK;
}

sf_indexing sf_indexing_get(const sf_op *op, const sf_type *operand, const sf_type *indices)
{
    sf_ints window = sf_op_ints(op, SF_INDEXING_WINDOW), map = sf_op_ints(op, SF_INDEXING_MAP);
    sf_ints dropped = sf_op_ints(op, SF_INDEXING_DROPPED);
    sf_ints batch = sf_op_ints(op, SF_INDEXING_OPERAND_BATCH);
    sf_indexing out = {.operand_rank = operand->rank, .indices_rank = indices->rank};
    out.vector_dim = (int)sf_op_int(op, SF_INDEXING_VECTOR_DIM, 0);
    out.windowed_rank = window.count + indices->rank - (out.vector_dim < indices->rank);
    int next = 0;
    for (int d = 0; d < operand->rank; d++) {
        bool runs = !sf_has(dropped, d) && !sf_has(batch, d);
        out.window_of[d] = runs ? (int)window.at[next++] : -1;
        out.batch_of[d] = out.start_of[d] = -1;
    }
    for (int i = 0; i < batch.count; i++)
        out.batch_of[batch.at[i]] = (int)sf_op_ints(op, SF_INDEXING_INDICES_BATCH).at[i];
    for (int i = 0; i < map.count; i++)
        out.start_of[map.at[i]] = i;
    for (int q = 0; q < indices->rank; q++)
        out.windowed_of[q] = -1;
    next = 0;
    for (int p = 0; p < out.windowed_rank; p++) {
        out.indices_of[p] = -1;
        if (sf_has(window, p))
            continue;
        if (next == out.vector_dim)
            next++;
        out.windowed_of[next] = p;
        out.indices_of[p] = next++;
    }
    return out;
}

void sf_indexing_start(const sf_indexing *indexing, const sf_tensor *indices, const int64_t *point,
                       int64_t *start)
{
    int64_t flat = 0, vector_stride = 0, stride = 1;
    for (int q = indexing->indices_rank - 1; q >= 0; q--) {
        if (q == indexing->vector_dim) {
            vector_stride = stride;
        } else {
            int64_t global = point[indexing->windowed_of[q]];
            int64_t local = sf_span_local(sf_tensor_span(indices, q), global);
            SF_ASSERT(local >= 0);
            flat += local * stride;
        }
        stride *= indices->type->dims[q];
    }
    for (int d = 0; d < indexing->operand_rank; d++) {
        start[d] = 0;
        if (indexing->batch_of[d] >= 0)
            start[d] = point[indexing->windowed_of[indexing->batch_of[d]]];
        else if (indexing->start_of[d] >= 0)
            start[d] = sf_index_at(indices, flat + indexing->start_of[d] * vector_stride);
    }
}
