#include "plan/region_plan.h"

#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "ir/opdef.h"
#include "op/flops.h"
#include "plan/propagate.h"

enum { LOOP_BODY = 1 };

static bool is_body(const sf_node *node, uint32_t region)
{
    return node->def->control == SF_CONTROL_BRANCH || region == LOOP_BODY;
}

/* The region as a step; values that a loop carries are its state. */
static sf_graph *graph_of_region(const sf_graph *whole, const sf_node *node, uint32_t region,
                                 sf_pool *pool)
{
    sf_graph *graph = sf_graph_new(pool);
    sf_value *map = sf_alloc(whole->nvalues * sizeof *map);
    graph->top = sf_block_clone(whole, node->regions[region], graph, map);
    sf_free(map);
    graph->name = whole->name;
    graph->has_scopes = whole->has_scopes;
    graph->scopes_guessed = whole->scopes_guessed;
    const sf_block *top = graph->top;
    bool repeats = node->def->control == SF_CONTROL_LOOP && region == LOOP_BODY;
    graph->arguments = SF_ARRAY(&graph->arena, top->narguments, sf_argument);
    graph->results = SF_ARRAY(&graph->arena, top->nresults, sf_result);
    for (uint32_t i = 0; i < top->narguments; i++) {
        char name[40];
        int length = snprintf(name, sizeof name, "%s argument %u", node->def->name, i);
        graph->arguments[i] =
            (sf_argument){.name = sf_pool_string(pool, (sf_str){name, (size_t)length}),
                          .role = SF_ROLE_OTHER,
                          .next = repeats && i < node->nresults ? i : SF_NONE,
                          .gradient = SF_NONE};
    }
    for (uint32_t i = 0; i < top->nresults; i++)
        graph->results[i].name = "";
    return graph;
}

/* Layouts that the plan gives for nodes inside, and for those in their regions. `copy` is the block
 * in the region's own step. */
static void take_said(const sf_graph *whole, sf_layout *const *said, const sf_block *block,
                      const sf_block *copy, const sf_region_plan *out, bool *fixed)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *from = whole->nodes[block->nodes[i]];
        const sf_node *to = out->graph->nodes[copy->nodes[i]];
        for (uint32_t r = 0; r < from->nregions; r++)
            take_said(whole, said, from->regions[r], to->regions[r], out, fixed);
        if (!said[from->id])
            continue;
        out->plan->nodes[to->id] =
            sf_arena_copy(&out->plan->arena, said[from->id],
                          (to->noperands + to->nresults) * sizeof **out->plan->nodes);
        fixed[to->id] = true;
    }
}

sf_status sf_plan_region(const sf_graph *whole, const sf_mesh *mesh, sf_layout *const *said,
                         const sf_node *node, const sf_layout *layouts, uint32_t region,
                         sf_pool *pool, sf_diag *diag, sf_region_plan *out)
{
    uint32_t first = sf_first_entering(node);
    *out = (sf_region_plan){.graph = graph_of_region(whole, node, region, pool)};
    out->plan = sf_plan_of(out->graph, mesh, 0);
    for (uint32_t i = first; i < node->noperands; i++)
        out->plan->arguments[i - first] = layouts[i];
    for (uint32_t i = 0; is_body(node, region) && i < node->nresults; i++)
        out->plan->results[i] = layouts[node->noperands + i];
    bool *fixed = SF_ARRAY(&out->plan->arena, out->graph->nnodes, bool);
    if (said)
        take_said(whole, said, node->regions[region], out->graph->top, out, fixed);
    sf_status status = sf_plan_propagate_around(out->graph, out->plan, fixed, diag);
    if (status != SF_OK)
        sf_region_plan_free(out);
    return status;
}

void sf_region_plan_free(sf_region_plan *region)
{
    sf_plan_free(region->plan);
    sf_graph_free(region->graph);
    *region = (sf_region_plan){0};
}

void sf_plan_regions(const sf_graph *whole, const sf_mesh *mesh, sf_layout *const *said,
                     const sf_node *node, const sf_layout *layouts, double times,
                     sf_see_region *see, void *context)
{
    sf_pool *pool = sf_pool_derive(whole->pool);
    for (uint32_t r = 0; r < node->nregions; r++) {
        sf_region_plan region;
        if (sf_plan_region(whole, mesh, said, node, layouts, r, pool, NULL, &region) != SF_OK)
            continue;
        see(context, region.graph, region.plan, times * sf_region_runs(node, r));
        sf_region_plan_free(&region);
    }
    sf_pool_release(pool);
}

int sf_region_misfit(const sf_node *node, const sf_layout *layouts)
{
    if (node->def->control == SF_CONTROL_BRANCH)
        return sf_layout_is_replicated(&layouts[0]) ? -1 : 0;
    for (uint32_t i = 0; i < node->nresults; i++)
        if (!sf_layout_equal(&layouts[i], &layouts[node->noperands + i]))
            return (int)(node->noperands + i);
    return -1;
}
