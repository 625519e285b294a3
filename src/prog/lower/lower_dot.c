#include <string.h>

#include "op/slots.h"
#include "op/util.h"
#include "prog/lower/lowering.h"

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

bool is_transposed(const lowering *l, sf_dtype dtype)
{
    return l->target->transposes && l->target->transposes(dtype);
}

/* A stride for each group, and side by side in one of them if the target needs that. */
static bool has_strides(const lowering *l, const sf_view *view, const groups *g)
{
    int64_t across, along;
    return one_stride(view, g->nfree, g->free, &across) &&
           one_stride(view, g->sum.count, g->sum.at, &along) &&
           (l->target->call_bytes == 0 || across == 1 || along == 1);
}

/* Whether the summed dimensions are contiguous. */
static bool sums_beside(const sf_view *view, const groups *g)
{
    int64_t stride;
    return one_stride(view, g->sum.count, g->sum.at, &stride) && stride == 1;
}

/* What a product wants of a factor, beside strides of its groups. */
typedef struct wants {
    bool sums;    /* contiguous */
    bool batches; /* one stride apart */
} wants;

static bool suits(const lowering *l, const sf_view *view, const groups *g, wants w)
{
    int64_t stride;
    return has_strides(l, view, g) && (!w.sums || sums_beside(view, g)) &&
           (!w.batches || one_stride(view, g->batch.count, g->batch.at, &stride));
}

/* A copy of the operand that was made for another product, and suits this one, too; or NULL. Where copies are many, none stays from
 * the forward pass to the backward pass. */
static const sf_view *transposed_before(const lowering *l, const sf_node *node, int operand,
                                        const groups *g, wants w)
{
    const sf_view *view = l->values[value_of(l, node->operands[operand])].transposed;
    if (!view || !suits(l, view, g, w))
        return NULL;
    const sf_inst *made = &l->program->insts[l->made[view->buffer]];
    return l->target->call_bytes == 0 || made->origin.phase == node->phase ? view : NULL;
}

/* The operand as a copy in the order batch, free, sum. */
static sf_view transposed_of(lowering *l, const sf_node *node, int operand, const groups *g,
                             wants w)
{
    const sf_view *before = transposed_before(l, node, operand, g, w);
    if (before)
        return *before;
    int64_t order[SF_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < g->batch.count; i++)
        order[rank++] = g->batch.at[i];
    for (int i = 0; i < g->nfree; i++)
        order[rank++] = g->free[i];
    for (int i = 0; i < g->sum.count; i++)
        order[rank++] = g->sum.at[i];
    sf_view view = *view_of(l, node->operands[operand]), permuted = view;
    for (int i = 0; i < rank; i++) {
        permuted.dims[i] = view.dims[order[i]];
        permuted.strides[i] = view.strides[order[i]];
    }
    sf_view copy = copy_of(l, &permuted, node), out = copy;
    for (int i = 0; i < rank; i++) {
        out.dims[order[i]] = copy.dims[i];
        out.strides[order[i]] = copy.strides[i];
    }
    l->values[value_of(l, node->operands[operand])].transposed =
        sf_arena_copy(&l->scratch, &out, sizeof out);
    return out;
}

/* The operand with a stride for each of its groups, with contiguous sums if the target needs that:
 * as it is, or as a copy. */
static sf_view matrix_of(lowering *l, const sf_node *node, int operand, const groups *g)
{
    const sf_view *view = view_of(l, node->operands[operand]);
    bool sums = is_transposed(l, view->dtype), is_library = l->target->call_bytes > 0;
    if (suits(l, view, g, (wants){.sums = sums}))
        return *view;
    return transposed_of(l, node, operand, g, (wants){.sums = sums || !is_library});
}

static int64_t size_of(const sf_view *view, int count, const int64_t *dims)
{
    int64_t size = 1;
    for (int i = 0; i < count; i++)
        size *= view->dims[dims[i]];
    return size;
}

/* Units that round f32 need the summed dimensions contiguous in at least one factor. If neither has
 * them, a transposed copy that exists is used, or, for a large product, one factor is transposed:
 * the smaller, or the second, which in the gradient of a weight is what other weights were
 * multiplied by as well. */
static void turn_one(lowering *l, const sf_node *node, const groups g[2], sf_view in[2])
{
    double flops = 2 * (double)size_of(&in[0], g[0].sum.count, g[0].sum.at) *
                   (double)size_of(&in[0], g[0].batch.count, g[0].batch.at);
    for (int i = 0; i < 2; i++) {
        if (sums_beside(&in[i], &g[i]))
            return;
        flops *= (double)size_of(&in[i], g[i].nfree, g[i].free);
    }
    int64_t counts[] = {sf_view_count(&in[0]), sf_view_count(&in[1])};
    wants sums = {.sums = true};
    int smaller = counts[0] < counts[1] ? 0 : 1;
    bool saves = flops >= l->target->transpose_flops +
                              (double)counts[smaller] * l->target->transpose_element;
    int which = transposed_before(l, node, 0, &g[0], sums)   ? 0
                : transposed_before(l, node, 1, &g[1], sums) ? 1
                : saves                                      ? smaller
                                                             : -1;
    if (which >= 0)
        in[which] = transposed_of(l, node, which, &g[which], sums);
}

/* The transpose that alone reads the value; or NULL. */
static const sf_node *only_transpose(const lowering *l, sf_value value)
{
    uint32_t reader = l->readers[value];
    return reader < SEVERAL && sf_is(l->graph->nodes[reader], SF_OP_TRANSPOSE)
               ? l->graph->nodes[reader]
               : NULL;
}

/* Whether elements that the transpose puts side by side are those along the last of the rows. */
static bool puts_rows_last(const sf_type *type, const sf_attr *order, int nbatch, int rows_end)
{
    int last_row = rows_end - 1, last = type->rank - 1;
    while (last_row > nbatch && type->dims[last_row] == 1)
        last_row--;
    while (last > 0 && type->dims[order->ints[last]] == 1)
        last--;
    return last_row >= nbatch && order->ints[last] == last_row;
}

/* Rows and columns change places in memory. */
static void swap_rows(int nbatch, int rows_end, sf_view *out)
{
    int64_t stride = 1;
    for (int d = rows_end - 1; d >= nbatch; d--) {
        out->strides[d] = stride;
        stride *= out->dims[d];
    }
    for (int d = out->rank - 1; d >= rows_end; d--) {
        out->strides[d] = stride;
        stride *= out->dims[d];
    }
}

/* The product in the order in which the one transpose that reads it wants it, or, where no matrix library writes so, as rows and
 * columns have to lie side by side, with those columns last that this puts side by side; false where it stays as it is. */
static bool lay_transposed(const lowering *l, const sf_node *node, int nrows, sf_dot *dot,
                           sf_view *out)
{
    const sf_node *transpose = only_transpose(l, node->result);
    if (!transpose || dot->m == 1 || dot->n == 1)
        return false;
    const sf_attr *order = transpose->attrs[SF_TRANSPOSE_PERMUTATION];
    const sf_type *type = sf_type_of(l->graph, node->result);
    sf_view wanted = sf_view_whole(SF_NONE, sf_type_of(l->graph, transpose->result));
    int64_t dims[SF_MAX_RANK], row, column;
    int nbatch = dot->nbatch, rows_end = nbatch + nrows;
    *out = sf_view_whole(SF_NONE, type);
    for (int i = 0; i < out->rank; i++) {
        out->strides[order->ints[i]] = wanted.strides[i];
        dims[i] = i;
    }
    if (!one_stride(out, nrows, dims + nbatch, &row) ||
        !one_stride(out, out->rank - rows_end, dims + rows_end, &column) ||
        (row != 1 && column != 1)) {
        if (!puts_rows_last(type, order, nbatch, rows_end))
            return false;
        *out = sf_view_whole(SF_NONE, type);
        swap_rows(nbatch, rows_end, out);
        row = 1;
        column = dot->m;
    }
    dot->c_row = row;
    dot->c_column = column;
    memcpy(dot->c_batch, out->strides, (size_t)nbatch * sizeof *dot->c_batch);
    return true;
}

/* The order of summed dimensions is free. One in which the larger factor need not be copied. */
static void order_sums(lowering *l, const sf_node *node, groups g[2])
{
    const sf_view *views[2] = {view_of(l, node->operands[0]), view_of(l, node->operands[1])};
    int larger = sf_view_count(views[0]) < sf_view_count(views[1]), count = g[0].sum.count;
    int64_t *orders[2], stride;
    if (one_stride(views[larger], count, g[larger].sum.at, &stride))
        return;
    for (int i = 0; i < 2; i++)
        orders[i] = sf_arena_copy(&l->scratch, g[i].sum.at, (size_t)count * sizeof *orders[i]);
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && views[larger]->strides[orders[larger][k - 1]] <
                                     views[larger]->strides[orders[larger][k]];
             k--)
            for (int side = 0; side < 2; side++) {
                int64_t moved = orders[side][k];
                orders[side][k] = orders[side][k - 1];
                orders[side][k - 1] = moved;
            }
    if (!one_stride(views[larger], count, orders[larger], &stride))
        return;
    for (int i = 0; i < 2; i++)
        g[i].sum.at = orders[i];
}

/* The factors as matrices, and the result by rows. */
static void set_matrices(const groups g[2], const sf_view in[2], sf_dot *dot)
{
    dot->nbatch = g[0].batch.count;
    dot->m = size_of(&in[0], g[0].nfree, g[0].free);
    dot->n = size_of(&in[1], g[1].nfree, g[1].free);
    dot->k = size_of(&in[0], g[0].sum.count, g[0].sum.at);
    one_stride(&in[0], g[0].nfree, g[0].free, &dot->a_row);
    one_stride(&in[0], g[0].sum.count, g[0].sum.at, &dot->a_column);
    one_stride(&in[1], g[1].sum.count, g[1].sum.at, &dot->b_row);
    one_stride(&in[1], g[1].nfree, g[1].free, &dot->b_column);
    dot->c_row = dot->n;
    dot->c_column = 1;
    int64_t stride = dot->m * dot->n;
    for (int i = dot->nbatch - 1; i >= 0; i--) {
        dot->batch[i] = in[0].dims[g[0].batch.at[i]];
        dot->a_batch[i] = in[0].strides[g[0].batch.at[i]];
        dot->b_batch[i] = in[1].strides[g[1].batch.at[i]];
        dot->c_batch[i] = stride;
        stride *= dot->batch[i];
    }
}

static double bytes_of(const sf_view *view)
{
    return (double)sf_view_count(view) * sf_dtype_get(view->dtype)->bytes;
}

/* Whether copies of so many bytes take less time than the calls that they save. */
static bool saves_calls(const lowering *l, const sf_dot *dot, double bytes)
{
    int64_t together, calls = 1;
    int outer = sf_dot_inner_batches(dot, &together);
    for (int d = 0; d < outer; d++)
        calls *= dot->batch[d];
    return bytes < (double)(calls - 1) * l->target->call_bytes;
}

/* Factors whose batches are not one stride apart are copied where that saves calls. */
static void join_batches(lowering *l, const sf_node *node, const groups g[2], sf_view in[2],
                         sf_dot *dot)
{
    const wants batches = {.sums = is_transposed(l, in[0].dtype), .batches = true};
    double bytes = 0;
    for (int i = 0; i < 2; i++)
        bytes += suits(l, &in[i], &g[i], batches) ? 0 : bytes_of(&in[i]);
    if (bytes == 0 || !saves_calls(l, dot, bytes))
        return;
    for (int i = 0; i < 2; i++)
        if (!suits(l, &in[i], &g[i], batches))
            in[i] = transposed_of(l, node, i, &g[i], batches);
    set_matrices(g, in, dot);
}

void lower_dot(lowering *l, const sf_node *node)
{
    sf_program *p = l->program;
    sf_op op = op_of(l, node);
    groups g[2] = {group_dims(&op, 0), group_dims(&op, 1)};
    order_sums(l, node, g);
    sf_view *in = SF_ARRAY(&p->arena, 2, sf_view);
    for (int i = 0; i < 2; i++)
        in[i] = matrix_of(l, node, i, &g[i]);
    bool is_exact = sf_op_is_exact(&op);
    if (l->rounds && l->target->transpose_flops > 0 && !is_exact && in[0].dtype == SF_F32 &&
        in[1].dtype == SF_F32)
        turn_one(l, node, g, in);
    sf_dot *dot = SF_NEW(&p->arena, sf_dot);
    dot->exact = is_exact;
    set_matrices(g, in, dot);
    join_batches(l, node, g, in, dot);
    uint32_t inst = add_inst(l, SF_INST_DOT, node);
    p->insts[inst].in = in;
    p->insts[inst].nin = 2;
    p->insts[inst].dot = dot;
    set_results(l, node, inst);
    sf_view laid;
    sf_dot other = *dot;
    if (lay_transposed(l, node, g[0].nfree, &other, &laid) &&
        !saves_calls(l, &other, bytes_of(&laid))) {
        *dot = other;
        laid.buffer = p->insts[inst].out[0].buffer;
        p->insts[inst].out[0] = laid;
        set_view(l, node->result, &laid);
    }
}
