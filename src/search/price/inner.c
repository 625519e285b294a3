#include "search/price/inner.h"

#include "op/flops.h"
#include "plan/plan_reshards.h"

typedef struct counting {
    const sf_mesh *mesh;
    const sf_costs *costs;
    sf_inner_work work;
} counting;

static double collective_seconds(const counting *c, const sf_moves *moves)
{
    double seconds = 0;
    for (size_t i = 0; i < moves->nmoves; i++) {
        const sf_moving *move = &moves->moves[i];
        const sf_bucket *bucket = move->bucket == SF_NONE ? NULL : &moves->buckets[move->bucket];
        if (sf_is_local_move(move->kind) || (bucket && bucket->last != i))
            continue;
        seconds += sf_costs_collective(c->costs, sf_move_collective(move->kind), move->axes,
                                       bucket ? bucket->bytes : sf_larger_piece(move));
    }
    return seconds;
}

static void count_region(void *context, const sf_graph *graph, const sf_plan *plan, double times)
{
    counting *c = context;
    sf_arena arena = {0};
    sf_moves *moves;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        const sf_layout *layouts = plan->nodes[node->id];
        sf_axes split = sf_layouts_split(layouts, node->noperands + node->nresults);
        if (sf_is_control(node))
            sf_plan_regions(graph, c->mesh, plan->nodes, node, layouts, times, count_region, c);
        else
            c->work.flops += times * sf_node_flops(graph, node) / sf_group_size(c->mesh, split);
    }
    if (c->costs && sf_moves_of(graph, plan, &arena, NULL, &moves) == SF_OK)
        c->work.seconds += times * collective_seconds(c, moves);
    sf_arena_free(&arena);
}

sf_inner_work sf_inner_work_of(const sf_graph *graph, const sf_node *node, const sf_layout *layouts,
                               const sf_mesh *mesh, const sf_costs *costs)
{
    if (sf_layouts_are_replicated(layouts, node->noperands + node->nresults))
        return (sf_inner_work){.flops = sf_node_flops(graph, node)};
    counting c = {.mesh = mesh, .costs = costs};
    sf_plan_regions(graph, mesh, NULL, node, layouts, 1, count_region, &c);
    return c.work;
}
