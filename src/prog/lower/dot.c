#include <string.h>

#include "op/slots.h"
#include "op/util.h"
#include "prog/lower/build.h"

/* The dimensions of an operand of a dot, grouped. */
typedef struct groups {
    sf_ints batch, sum;
    int nfree;
    int64_t free[SF_MAX_RANK];
} groups;

static groups group_dims(const sf_op *op, int operand)
{
    groups g = {.batch = sf_op_ints(op, SF_DOT_LHS_BATCH + operand),
                .sum = sf_op_ints(op, SF_DOT_LHS_CONTRACTING + operand)};
    for (int i = 0; i < op->in[operand]->rank; i++) {
        bool taken = false;
        for (int j = 0; j < g.batch.count; j++)
            taken = taken || g.batch.at[j] == i;
        for (int j = 0; j < g.sum.count; j++)
            taken = taken || g.sum.at[j] == i;
        if (!taken)
            g.free[g.nfree++] = i;
    }
    return g;
}

/* One stride for several dimensions, major to minor; false when there is none. */
static bool one_stride(const sf_view *view, int count, const int64_t *dims, int64_t *stride)
{
    int64_t expected = 0;
    *stride = 1;
    bool any = false;
    for (int i = count - 1; i >= 0; i--) {
        if (view->dims[dims[i]] == 1)
            continue;
        if (!any)
            *stride = expected = view->strides[dims[i]];
        else if (view->strides[dims[i]] != expected)
            return false;
        any = true;
        expected *= view->dims[dims[i]];
    }
    return true;
}

bool is_turned(const lowering *l, sf_dtype dtype)
{
    return l->target->turns && l->target->turns(dtype);
}

/* The operand in an order in which its groups have strides, and what is summed lies side by side where the target wants that: as it
 * is, or as a copy in the order batch, free, sum. `g` then numbers the copy's dimensions. */
static sf_view matrix_of(lowering *l, const sf_node *node, int operand, groups *g,
                         int64_t order[SF_MAX_RANK])
{
    sf_view view = *view_of(l, node->operands[operand]);
    int64_t stride;
    if (one_stride(&view, g->nfree, g->free, &stride) &&
        one_stride(&view, g->sum.count, g->sum.at, &stride) &&
        (stride == 1 || !is_turned(l, view.dtype)))
        return view;
    sf_view permuted = view;
    int rank = 0;
    for (int i = 0; i < g->batch.count; i++)
        order[rank++] = g->batch.at[i];
    for (int i = 0; i < g->nfree; i++)
        order[rank++] = g->free[i];
    for (int i = 0; i < g->sum.count; i++)
        order[rank++] = g->sum.at[i];
    for (int i = 0; i < rank; i++) {
        permuted.dims[i] = view.dims[order[i]];
        permuted.strides[i] = view.strides[order[i]];
        order[i] = i;
    }
    *g = (groups){.batch = {g->batch.count, order}, .nfree = g->nfree};
    for (int i = 0; i < g->nfree; i++)
        g->free[i] = g->batch.count + i;
    g->sum = (sf_ints){rank - g->batch.count - g->nfree, order + g->batch.count + g->nfree};
    return copy_of(l, &permuted, node);
}

static int64_t size_of(const sf_view *view, int count, const int64_t *dims)
{
    int64_t size = 1;
    for (int i = 0; i < count; i++)
        size *= view->dims[dims[i]];
    return size;
}

/* The product in the order in which the one transpose that reads it wants it; false where there is none, or
 * no matrix library writes so: rows or columns have to lie side by side. */
static bool lay_transposed(const lowering *l, const sf_node *node, int nrows, sf_dot *dot,
                           sf_view *out)
{
    uint32_t reader = l->readers[node->result];
    if (reader >= SEVERAL || !sf_is(l->graph->nodes[reader], SF_OP_TRANSPOSE) || dot->m == 1 ||
        dot->n == 1)
        return false;
    const sf_node *transpose = l->graph->nodes[reader];
    const sf_attr *order = transpose->attrs[SF_TRANSPOSE_PERMUTATION];
    sf_view wanted = sf_view_whole(SF_NONE, sf_type_of(l->graph, transpose->result));
    int64_t dims[SF_MAX_RANK], row, column;
    int nbatch = dot->nbatch, rows_end = nbatch + nrows;
    *out = sf_view_whole(SF_NONE, sf_type_of(l->graph, node->result));
    for (int i = 0; i < out->rank; i++) {
        out->strides[order->ints[i]] = wanted.strides[i];
        dims[i] = i;
    }
    if (!one_stride(out, nrows, dims + nbatch, &row) ||
        !one_stride(out, out->rank - rows_end, dims + rows_end, &column) ||
        (row != 1 && column != 1))
        return false;
    dot->c_row = row;
    dot->c_column = column;
    memcpy(dot->c_batch, out->strides, (size_t)nbatch * sizeof *dot->c_batch);
    return true;
}

void lower_dot(lowering *l, const sf_node *node)
{
    sf_program *p = l->program;
    sf_op op = op_of(l, node);
    groups a = group_dims(&op, 0), b = group_dims(&op, 1);
    int64_t a_order[SF_MAX_RANK], b_order[SF_MAX_RANK];
    sf_view *in = SF_ARRAY(&p->arena, 2, sf_view);
    in[0] = matrix_of(l, node, 0, &a, a_order);
    in[1] = matrix_of(l, node, 1, &b, b_order);
    sf_dot *dot = SF_NEW(&p->arena, sf_dot);
    dot->nbatch = a.batch.count;
    dot->m = size_of(&in[0], a.nfree, a.free);
    dot->n = size_of(&in[1], b.nfree, b.free);
    dot->k = size_of(&in[0], a.sum.count, a.sum.at);
    one_stride(&in[0], a.nfree, a.free, &dot->a_row);
    one_stride(&in[0], a.sum.count, a.sum.at, &dot->a_column);
    one_stride(&in[1], b.sum.count, b.sum.at, &dot->b_row);
    one_stride(&in[1], b.nfree, b.free, &dot->b_column);
    dot->exact = sf_op_is_exact(&op);
    dot->c_row = dot->n;
    dot->c_column = 1;
    int64_t stride = dot->m * dot->n;
    for (int i = dot->nbatch - 1; i >= 0; i--) {
        dot->batch[i] = in[0].dims[a.batch.at[i]];
        dot->a_batch[i] = in[0].strides[a.batch.at[i]];
        dot->b_batch[i] = in[1].strides[b.batch.at[i]];
        dot->c_batch[i] = stride;
        stride *= dot->batch[i];
    }
    uint32_t inst = add_inst(l, SF_INST_DOT, node);
    p->insts[inst].in = in;
    p->insts[inst].nin = 2;
    p->insts[inst].dot = dot;
    set_results(l, node, inst);
    sf_view laid;
    if (lay_transposed(l, node, a.nfree, dot, &laid)) {
        laid.buffer = p->insts[inst].out[0].buffer;
        p->insts[inst].out[0] = laid;
        set_view(l, node->result, &laid);
    }
}
