/* Values that are sent between stages, and values that any stage has or computes for itself. */
#include "op/flops.h"
#include "op/op.h"
#include "plan/pipeline/stage.h"
#include "plan/pipeline/stage_flow.h"

bool sf_is_handed_in(const sf_argument *argument)
{
    if (argument->role == SF_ROLE_KEY || argument->role == SF_ROLE_BATCH)
        return true;
    return argument->role == SF_ROLE_OTHER && argument->next == SF_NONE;
}

bool *sf_find_anywhere(const sf_graph *graph, sf_arena *arena)
{
    const sf_block *top = graph->top;
    bool *anywhere = SF_ARRAY(arena, graph->nnodes, bool);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        bool all = !sf_is_dear(node);
        for (uint32_t o = 0; o < node->noperands && all; o++) {
            const sf_value_info *info = &graph->values[sf_source_of(graph, node->operands[o])];
            all = info->node == SF_NONE ? sf_is_handed_in(&graph->arguments[info->index])
                                        : anywhere[info->node];
        }
        anywhere[node->id] = all || sf_hands_on(node);
    }
    return anywhere;
}

bool *sf_find_moving(const sf_graph *graph, sf_arena *arena)
{
    const sf_block *top = graph->top;
    bool *moving = SF_ARRAY(arena, graph->nnodes, bool);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        for (uint32_t o = 0; o < node->noperands && !moving[node->id]; o++) {
            const sf_value_info *info = &graph->values[node->operands[o]];
            moving[node->id] = info->node == SF_NONE
                                   ? sf_is_handed_in(&graph->arguments[info->index])
                                   : moving[info->node];
        }
    }
    return moving;
}
