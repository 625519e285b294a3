/* Accumulated gradients: nodes of the backward pass on them may wait until all micro-batches are
 * done.
 *
 * A value that updates alone read is a sum over micro-batches. If it is made of gradients by adding
 * and moving elements, those are sums over micro-batches as well, and it may be computed once per
 * step, from accumulated values: the two gradients of a tied weight need not be added in every
 * micro-batch. */
#include "op/op.h"
#include "op/slots.h"
#include "plan/pipeline/stage.h"
#include "plan/pipeline/stage_flow.h"

static bool adds_or_moves(const sf_node *node)
{
    switch (node->def->id) {
    case SF_OP_ADD:
    case SF_OP_SUBTRACT:
    case SF_OP_NEGATE:
    case SF_OP_CONVERT: /* of sums in fewer bits: rounded once */
    case SF_OP_RESHAPE:
    case SF_OP_TRANSPOSE:
    case SF_OP_PAD:
    case SF_OP_CONCATENATE:
    case SF_OP_DYNAMIC_UPDATE_SLICE:
        return node->nresults == 1 && node->noperands <= 32 && node->def->linear;
    default:
        return false;
    }
}

/* Whether it is zero, and so is its sum over micro-batches. */
static bool is_zero(const sf_graph *graph, sf_value value)
{
    const sf_node *maker = sf_maker(graph, value);
    while (maker && sf_is(maker, SF_OP_BROADCAST_IN_DIM))
        maker = sf_maker(graph, maker->operands[0]);
    if (!maker || !sf_is(maker, SF_OP_CONSTANT))
        return false;
    const sf_dense *dense = &maker->attrs[SF_CONSTANT_VALUE]->dense;
    return dense->splat && dense->data && sf_load_f64(dense->type->dtype, dense->data, 0) == 0;
}

/* Whether the node is linear: a sum of its results is its result for the sums of all operands that
 * depend on the micro-batch. */
static bool is_linear(const sf_graph *graph, const sf_node *node, const bool *moving)
{
    const sf_type *types[33];
    uint32_t masks[SF_MAX_LINEAR], partial = 0, zero = 0;
    if (!adds_or_moves(node))
        return false;
    sf_op op = sf_op_of(graph, node, types);
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = sf_maker(graph, node->operands[o]);
        if (maker && moving[maker->id])
            partial |= 1u << o;
        else if (is_zero(graph, node->operands[o]))
            zero |= 1u << o;
    }
    int count = node->def->linear(&op, masks);
    for (int m = 0; m < count; m++)
        if ((masks[m] & ~zero) == partial)
            return true;
    return false;
}

bool *sf_find_late(const sf_graph *graph, sf_arena *arena)
{
    bool *late = SF_ARRAY(arena, graph->nnodes, bool);
    const bool *moving = sf_find_moving(graph, arena);
    sf_flow flow = sf_flow_of(graph, arena);
    for (uint32_t i = graph->top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(graph, i);
        bool all = node->phase == SF_BACKWARD && moving[node->id] && is_linear(graph, node, moving);
        for (uint32_t u = flow.uses.first[node->result];
             all && u < flow.uses.first[node->result + 1]; u++) {
            uint32_t reader = flow.uses.at[u].node;
            all = reader == SF_NONE || graph->nodes[reader]->phase == SF_UPDATE || late[reader];
        }
        late[node->id] = all;
    }
    return late;
}
