#include "plan/plan.h"

#include <string.h>

#include "base/mem.h"

static sf_layout *new_layouts(sf_plan *plan, size_t count)
{
    return SF_ARRAY(&plan->arena, count, sf_layout);
}

/* `hash` is that of the graph, which takes longer to find than the rest of a plan. */
sf_plan *sf_plan_of(const sf_graph *graph, const sf_mesh *mesh, uint64_t hash)
{
    sf_plan *plan = sf_alloc(sizeof *plan);
    const sf_block *top = graph->top;
    plan->graph = hash;
    plan->recipe = plan->recompute = plan->co_shard = "";
    plan->mesh = *mesh;
    for (int a = 0; a < mesh->naxes; a++)
        plan->mesh.axes[a].name =
            sf_arena_string(&plan->arena, mesh->axes[a].name, strlen(mesh->axes[a].name));
    plan->arguments = new_layouts(plan, top->narguments);
    plan->results = new_layouts(plan, top->nresults);
    plan->pinned = SF_ARRAY(&plan->arena, graph->nvalues, int);
    memset(plan->pinned, -1, graph->nvalues * sizeof *plan->pinned);
    plan->nodes = SF_ARRAY(&plan->arena, graph->nnodes, sf_layout *);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        plan->nodes[node->id] = new_layouts(plan, node->noperands + node->nresults);
    }
    return plan;
}

sf_plan *sf_plan_new(const sf_graph *graph, const sf_mesh *mesh)
{
    return sf_plan_of(graph, mesh, sf_graph_hash(graph));
}

static void copy_layouts(sf_layout *to, const sf_layout *from, size_t count)
{
    if (count > 0)
        memcpy(to, from, count * sizeof *to);
}

sf_plan *sf_plan_copy(const sf_plan *plan, const sf_graph *graph)
{
    sf_plan *copy = sf_plan_of(graph, &plan->mesh, plan->graph);
    const sf_block *top = graph->top;
    copy_layouts(copy->arguments, plan->arguments, top->narguments);
    copy_layouts(copy->results, plan->results, top->nresults);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        copy_layouts(copy->nodes[node->id], plan->nodes[node->id],
                     node->noperands + node->nresults);
    }
    sf_plan_copy_turns(plan, copy);
    if (plan->again) {
        copy->recompute = sf_arena_string(&copy->arena, plan->recompute, strlen(plan->recompute));
        copy->again = sf_arena_copy(&copy->arena, plan->again, graph->nnodes * sizeof *copy->again);
    }
    return copy;
}

void sf_plan_co_shard(sf_plan *plan, const char *recipe, int shards)
{
    const char *name = shards <= 1 ? "" : recipe ? recipe : "megatron";
    plan->co_shards = shards;
    if (strcmp(plan->co_shard, name) != 0)
        plan->co_shard = sf_arena_string(&plan->arena, name, strlen(name));
}

void sf_plan_copy_turns(const sf_plan *from, sf_plan *to)
{
    to->micro_batches = from->micro_batches;
    to->co_shards = from->co_shards;
    to->co_shard = sf_arena_string(&to->arena, from->co_shard, strlen(from->co_shard));
}

void sf_plan_free(sf_plan *plan)
{
    if (!plan)
        return;
    sf_arena_free(&plan->arena);
    sf_free(plan);
}

const sf_layout *sf_plan_layout(const sf_plan *plan, const sf_graph *graph, sf_value value)
{
    const sf_value_info *info = &graph->values[value];
    if (info->node == SF_NONE)
        return &plan->arguments[info->index];
    return &plan->nodes[info->node][graph->nodes[info->node]->noperands + info->index];
}

sf_status sf_plan_expect(const sf_plan *plan, const sf_graph *graph, sf_diag *diag)
{
    if (plan->graph == sf_graph_hash(graph))
        return SF_OK;
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the plan is for another step");
}
