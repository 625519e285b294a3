#include "plan/plan.h"

#include <string.h>

#include "base/mem.h"
#include "plan/plan_reshards.h"
#include "plan/stacked_layers.h"

static sf_layout *new_layouts(sf_plan *plan, size_t count)
{
    return SF_ARRAY(&plan->arena, count, sf_layout);
}

/* `hash` is that of the graph, which takes longer to compute than all other fields. */
sf_plan *sf_plan_of(const sf_graph *graph, const sf_mesh *mesh, uint64_t hash)
{
    sf_plan *plan = sf_alloc(sizeof *plan);
    const sf_block *top = graph->top;
    plan->graph = hash;
    plan->recipe = plan->recompute = "";
    plan->passes = (sf_plan_passes){.list = "", .cluster = ""};
    plan->kernels = graph->kernels;
    sf_plan_set_compiled(plan, graph->compiled);
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
    sf_layouts_keep(copy->arguments, top->narguments, &copy->arena);
    sf_layouts_keep(copy->results, top->nresults, &copy->arena);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        copy_layouts(copy->nodes[node->id], plan->nodes[node->id],
                     node->noperands + node->nresults);
    }
    sf_plan_copy_microbatches(plan, copy);
    sf_plan_copy_recompute(plan, graph, copy);
    if (plan->pipeline)
        copy->pipeline = sf_pipeline_copy(plan->pipeline, graph, &copy->arena);
    return copy;
}

void sf_plan_copy_recompute(const sf_plan *from, const sf_graph *graph, sf_plan *to)
{
    if (!from->recomputed)
        return;
    to->recompute = sf_arena_string(&to->arena, from->recompute, strlen(from->recompute));
    to->recomputed =
        sf_arena_copy(&to->arena, from->recomputed, graph->nnodes * sizeof *to->recomputed);
    if (from->recomputed_per_part)
        to->recomputed_per_part = sf_arena_copy(&to->arena, from->recomputed_per_part,
                                                graph->nnodes * sizeof *to->recomputed_per_part);
}

void sf_plan_copy_microbatches(const sf_plan *from, sf_plan *to)
{
    to->micro_batches = from->micro_batches;
    to->nco_shards = from->nco_shards;
    to->co_shards = sf_arena_copy(&to->arena, from->co_shards,
                                  (size_t)from->nco_shards * sizeof *to->co_shards);
    for (int i = 0; i < to->nco_shards; i++) {
        sf_co_shard *c = &to->co_shards[i];
        c->by = sf_arena_string(&to->arena, c->by, strlen(c->by));
        c->in = sf_arena_string(&to->arena, c->in, strlen(c->in));
    }
    sf_plan_copy_loops(from, to);
    sf_plan_set_passes(to, &from->passes);
}

void sf_plan_copy_loops(const sf_plan *from, sf_plan *to)
{
    to->kernels = from->kernels;
    sf_plan_set_compiled(to, from->compiled);
}

void sf_plan_set_compiled(sf_plan *plan, const char *scopes)
{
    plan->compiled = scopes ? sf_arena_string(&plan->arena, scopes, strlen(scopes)) : NULL;
}

void sf_plan_apply_loops(const sf_plan *plan, sf_graph *graph)
{
    graph->kernels = plan->kernels;
    graph->compiled =
        plan->compiled ? sf_pool_string(graph->pool, sf_str_of(plan->compiled)) : NULL;
}

void sf_plan_set_passes(sf_plan *plan, const sf_plan_passes *passes)
{
    plan->passes.list = sf_arena_string(&plan->arena, passes->list, strlen(passes->list));
    plan->passes.cluster = sf_arena_string(&plan->arena, passes->cluster, strlen(passes->cluster));
    plan->passes.memory = passes->memory;
    plan->passes.may_load = passes->may_load;
    if (plan->predicted)
        plan->predicted->simulated = NULL; /* its programs are others now */
}

/* Whether the axis splits a tensor that is not on several pipeline ranks; or splits it over others
 * than these. */
static bool uses_axis(const sf_plan *plan, const sf_graph *graph, const sf_pipeline *pipeline)
{
    const sf_block *top = graph->top;
    int axis = pipeline->axis;
    for (uint32_t i = 0; i < top->narguments; i++)
        if (plan->arguments[i].axes[axis].kind != SF_REPLICATED &&
            !sf_is_several(sf_pipeline_holders(pipeline, graph, i)))
            return true;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        bool may = sf_is_several(sf_pipeline_groups(pipeline, node->id)) ||
                   pipeline->stages.anywhere[node->id];
        for (uint32_t t = 0; t < node->noperands + node->nresults && !may; t++)
            if (plan->nodes[node->id][t].axes[axis].kind != SF_REPLICATED)
                return true;
    }
    return false;
}

/* State on all pipeline ranks has no set. */
static uint64_t said_groups(const sf_pipeline *pipeline, uint64_t groups)
{
    return groups == sf_all_groups(pipeline->schedule.pipe.ngroups) ? 0 : groups;
}

/* State is where its stage is. */
static sf_status place_state(sf_plan *plan, const sf_graph *graph, const sf_pipeline *pipeline,
                             uint32_t argument, sf_diag *diag)
{
    uint64_t holders = sf_pipeline_holders(pipeline, graph, argument);
    sf_layout *layout = &plan->arguments[argument];
    sf_share *share = &layout->axes[pipeline->axis];
    const sf_type *type = sf_argument_type(graph, argument);
    char why[SF_WHY_TEXT];
    share->on = said_groups(pipeline, holders);
    share->partition = NULL;
    if (!sf_layout_fits(layout, &plan->mesh, type->rank, type->dims, why))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "argument %s, over the pipeline ranks of its stage: %s",
                       graph->arguments[argument].name, why);
    if (graph->arguments[argument].next != SF_NONE)
        plan->results[graph->arguments[argument].next].axes[pipeline->axis] = *share;
    return SF_OK;
}

sf_status sf_plan_set_pipeline(sf_plan *plan, const sf_graph *graph, const sf_pipeline *pipeline,
                               sf_diag *diag)
{
    const sf_mesh *mesh = &plan->mesh;
    int axis = pipeline->axis;
    if (axis < 0 || axis >= mesh->naxes ||
        (uint32_t)mesh->axes[axis].size != pipeline->schedule.pipe.ngroups)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "the mesh has no axis of %u pipeline ranks for the stages",
                       pipeline->schedule.pipe.ngroups);
    if (uses_axis(plan, graph, pipeline))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "along axis %s stand the stages, but something is split along it",
                       mesh->axes[axis].name);
    plan->pipeline = sf_pipeline_copy(pipeline, graph, &plan->arena);
    if (plan->pipeline->split_bytes == 0)
        plan->pipeline->split_bytes = SF_BUCKET_BYTES;
    plan->micro_batches = (int)pipeline->schedule.pipe.nmicrobatches;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (!sf_is_handed_in(&graph->arguments[i]))
            SF_TRY(place_state(plan, graph, pipeline, i, diag));
    sf_plan_partition_stacks(plan, graph);
    return SF_OK;
}

void sf_plan_forget_axis(sf_plan *plan, const sf_graph *graph, int axis)
{
    const sf_block *top = graph->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        plan->arguments[i].axes[axis] = (sf_share){0};
    for (uint32_t i = 0; i < top->nresults; i++)
        plan->results[i].axes[axis] = (sf_share){0};
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
            plan->nodes[node->id][t].axes[axis] = (sf_share){0};
    }
}

int sf_plan_groups(const sf_plan *plan)
{
    return plan->pipeline ? plan->mesh.axes[plan->pipeline->axis].size : 1;
}

bool sf_plan_pipes(const sf_plan *plan, int axis)
{
    return plan->pipeline && plan->pipeline->axis == axis;
}

int sf_plan_group_rank(const sf_plan *plan, int group)
{
    int stride = 1;
    for (int a = plan->mesh.naxes - 1; plan->pipeline && a > plan->pipeline->axis; a--)
        stride *= plan->mesh.axes[a].size;
    return group * stride;
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
