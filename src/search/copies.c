#include "search/copies.h"

#include "op/op.h"

/* Of how many elements the axes leave the parts that this share of them is cut from, where they split one
 * dimension: the whole of it, or what those with longer periods have left. */
static int64_t length_before(const sf_mesh *mesh, const sf_type *type, const sf_layout *split,
                             sf_axes axes, const sf_share *share)
{
    int64_t length = type->dims[share->dim];
    for (int a = 0; a < mesh->naxes; a++)
        if (axes >> a & 1 && split->axes[a].dim == share->dim &&
            split->axes[a].period > share->period)
            length /= mesh->axes[a].size;
    return length;
}

/* Whether parts of a dimension that the axes split follow each other in memory. */
static bool is_outermost(const sf_mesh *mesh, const sf_type *type, const sf_layout *split,
                         sf_axes axes)
{
    for (int a = 0; a < mesh->naxes; a++) {
        const sf_share *share = &split->axes[a];
        if (!(axes >> a & 1))
            continue;
        for (int d = 0; d < share->dim; d++)
            if (type->dims[d] != 1)
                return false;
        if (share->period != length_before(mesh, type, split, axes, share))
            return false;
    }
    return true;
}

/* Products are written in the order that the transpose behind them wants (prog/dot.c). */
static bool is_transposed_product(const sf_graph *graph, const sf_node *node)
{
    const sf_node *maker = sf_is(node, SF_OP_TRANSPOSE) ? sf_maker(graph, node->operands[0]) : NULL;
    return maker && sf_is(maker, SF_OP_DOT_GENERAL);
}

/* Whether the value lies in memory in its own order: most views other than reshapes do not. */
static bool is_contiguous(const sf_efforts *efforts, const sf_version *version)
{
    sf_value value = version->value;
    if (version->move != SF_NONE)
        return true;
    while (efforts->place[value] != value) {
        const sf_node *maker = sf_maker(efforts->graph, value);
        if (!sf_is(maker, SF_OP_RESHAPE) && !sf_is(maker, SF_OP_OPTIMIZATION_BARRIER) &&
            !is_transposed_product(efforts->graph, maker))
            return false;
        value = maker->operands[value - maker->result];
    }
    return true;
}

sf_copies sf_copies_of(const sf_efforts *efforts, const sf_moves *moves, const sf_moving *move)
{
    const sf_mesh *mesh = &moves->plan->mesh;
    const sf_type *type = sf_type_of(efforts->graph, move->value);
    const sf_version *from = &moves->versions[moves->versions[move->from].same];
    const sf_version *to = &moves->versions[move->to];
    bool leaves = move->kind == SF_MOVE_SCATTER || move->kind == SF_MOVE_EXCHANGE;
    bool arrives = move->kind == SF_MOVE_GATHER || move->kind == SF_MOVE_EXCHANGE;
    sf_copies copies = {0};
    if (sf_is_local_move(move->kind))
        return copies;
    if (!is_contiguous(efforts, from) ||
        (leaves && !is_outermost(mesh, type, to->layout, move->axes)))
        copies.before = move->before;
    if (arrives && !is_outermost(mesh, type, from->layout, move->axes))
        copies.behind = move->after;
    return copies;
}

double sf_copy_seconds(const sf_costs *costs, double bytes)
{
    sf_effort copy = {.bytes = 2 * bytes};
    return bytes > 0 ? sf_costs_op(costs, &copy) : 0;
}
