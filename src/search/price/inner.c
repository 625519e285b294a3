#include "search/price/inner.h"

#include "op/flops.h"
#include "plan/plan_reshards.h"

typedef struct counting {
    const sf_mesh *mesh;
    const sf_costs *costs;
    sf_inner_work work;
} counting;

static double collective_seconds(const counting *c, const sf_reshards *reshards)
{
    double seconds = 0;
    for (size_t i = 0; i < reshards->nreshards; i++) {
        const sf_resharding *reshard = &reshards->reshards[i];
        const sf_bucket *bucket =
            reshard->bucket == SF_NONE ? NULL : &reshards->buckets[reshard->bucket];
        if (sf_is_local_reshard(reshard->kind) || (bucket && bucket->last != i))
            continue;
        seconds +=
            sf_costs_collective(c->costs, sf_reshard_collective(reshard->kind), reshard->axes,
                                bucket ? bucket->bytes : sf_larger_shard(reshard));
    }
    return seconds;
}

static void count_region(void *context, const sf_graph *graph, const sf_plan *plan, double times)
{
    counting *c = context;
    sf_arena arena = {0};
    sf_reshards *reshards;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        const sf_layout *layouts = plan->nodes[node->id];
        sf_axes split = sf_layouts_split(layouts, node->noperands + node->nresults);
        if (sf_is_control(node))
            sf_plan_regions(graph, c->mesh, plan->nodes, node, layouts, times, count_region, c);
        else
            c->work.flops += times * sf_node_flops(graph, node) / sf_group_size(c->mesh, split);
    }
    if (c->costs && sf_reshards_of(graph, plan, &arena, NULL, &reshards) == SF_OK)
        c->work.seconds += times * collective_seconds(c, reshards);
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
