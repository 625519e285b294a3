#include "plan/cheap_recompute.h"

#include "ir/opdef.h"
#include "op/flops.h"
#include "op/op.h"

bool sf_op_is_light(const sf_node *node)
{
    return node->def->cost == SF_COST_PASS && node->nregions == 0;
}

static void find_last_reads(const sf_graph *graph, const sf_uses *uses, sf_light *out)
{
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        out->place[graph->top->nodes[i]] = i;
    for (sf_value v = 0; v < graph->nvalues; v++)
        for (uint32_t u = uses->first[v]; u < uses->first[v + 1]; u++) {
            uint32_t user = uses->at[u].node;
            if (user != SF_NONE && graph->nodes[user]->phase == SF_FORWARD &&
                out->place[user] > out->last_read[v])
                out->last_read[v] = out->place[user];
        }
}

/* Until when all operands of the node are available, or follow from available values:
 * covered[value] is that of earlier values. */
static uint32_t covered_by_operands(const sf_graph *graph, const sf_node *node, const bool *is_free,
                                    const uint32_t *last_read, const uint32_t *covered)
{
    uint32_t until = UINT32_MAX;
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value value = node->operands[o];
        const sf_node *maker = sf_maker(graph, value);
        if (!maker || is_free[maker->id])
            continue; /* arguments and constants stay */
        uint32_t there = last_read[value] > covered[value] ? last_read[value] : covered[value];
        until = there < until ? there : until;
    }
    return until;
}

sf_light sf_find_light(const sf_graph *graph, const sf_uses *uses, const bool *is_free,
                       sf_arena *arena)
{
    sf_light out = {.place = SF_ARRAY(arena, graph->nnodes, uint32_t),
                    .last_read = SF_ARRAY(arena, graph->nvalues, uint32_t),
                    .is_light = SF_ARRAY(arena, graph->nnodes, bool)};
    uint32_t *covered = SF_ARRAY(arena, graph->nvalues, uint32_t);
    find_last_reads(graph, uses, &out);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->phase != SF_FORWARD || !sf_op_is_light(node))
            continue;
        uint32_t until = covered_by_operands(graph, node, is_free, out.last_read, covered);
        out.is_light[node->id] = true;
        for (uint32_t r = 0; r < node->nresults; r++) {
            covered[node->result + r] = until;
            if (until < out.last_read[node->result + r])
                out.is_light[node->id] = false;
        }
    }
    return out;
}
