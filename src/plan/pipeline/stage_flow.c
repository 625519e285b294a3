#include "plan/pipeline/stage_flow.h"

#include "op/op.h"

bool sf_hands_on(const sf_node *node)
{
    return node->phase == SF_BACKWARD && sf_is(node, SF_OP_OPTIMIZATION_BARRIER);
}

sf_value sf_source_of(const sf_graph *graph, sf_value value)
{
    for (;;) {
        const sf_node *maker = sf_maker(graph, value);
        if (!maker || !sf_hands_on(maker))
            return value;
        value = maker->operands[graph->values[value].index];
    }
}

/* Moves uses of barriers' results to their operands. Those of a value stay in the order of the
 * block, because a barrier comes before all its readers and the lists are made in that order. */
sf_flow sf_flow_of(const sf_graph *graph, sf_arena *arena)
{
    const sf_block *top = graph->top;
    sf_flow flow = {.source = SF_ARRAY(arena, graph->nvalues, sf_value)};
    uint32_t *first = SF_ARRAY(arena, graph->nvalues + 2, uint32_t);
    for (sf_value v = 0; v < graph->nvalues; v++)
        flow.source[v] = sf_source_of(graph, v);
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t i = 0; i <= top->nnodes; i++) {
            const sf_node *node = i < top->nnodes ? sf_top_node(graph, i) : NULL;
            uint32_t count = node ? node->noperands : top->nresults;
            const sf_value *read = node ? node->operands : top->results;
            for (uint32_t o = 0; o < count && !(node && sf_hands_on(node)); o++) {
                sf_value v = flow.source[read[o]];
                if (fill)
                    flow.uses.at[first[v + 1]++] =
                        (sf_value_use){node ? node->id : SF_NONE, node ? o : SF_NONE};
                else
                    first[v + 2]++;
            }
        }
        for (sf_value v = 0; v < graph->nvalues && !fill; v++)
            first[v + 2] += first[v + 1];
        if (!fill)
            flow.uses.at = SF_ARRAY(arena, first[graph->nvalues + 1], sf_value_use);
    }
    flow.uses.first = first;
    return flow;
}
