#include "local/time/unstacked_step.h"

#include <string.h>

#include "plan/propagate.h"
#include "plan/stacked_layers.h"

typedef struct partitioning {
    const sf_graph *graph;
    const sf_plan *plan;
    sf_arena arena;
    sf_stacks stacks;
    sf_row_split *splits;
    uint32_t **homes; /* by stack and part: the stage that it is in */
    sf_partitioned_step *out;
} partitioning;

/* A part for each pipeline rank that has rows, in the order of pipeline ranks. */
static bool split_stacks(partitioning *d)
{
    bool any = false;
    d->splits = SF_ARRAY(&d->arena, d->stacks.count, sf_row_split);
    for (uint32_t s = 0; s < d->stacks.count; s++) {
        const sf_row_partition *partition =
            sf_plan_row_partition_of(d->plan, d->graph, &d->stacks, s);
        uint64_t hands = partition ? sf_row_partition_owners(partition) : 0;
        uint32_t *of_row = SF_ARRAY(&d->arena, d->stacks.rows[s], uint32_t);
        for (int64_t row = 0; partition && row < partition->count; row++)
            of_row[row] = (uint32_t)sf_share_place((sf_share){.on = hands}, partition->to[row]);
        d->splits[s] = (sf_row_split){(uint32_t)__builtin_popcountll(hands), of_row};
        any = any || partition;
    }
    return any;
}

/* A part is in the first stage of its group that has a row of it. */
static void find_homes(partitioning *d)
{
    const sf_block *top = d->graph->top;
    d->homes = SF_ARRAY(&d->arena, d->stacks.count, uint32_t *);
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t stack = d->stacks.of_value[top->arguments[i]];
        const uint32_t *stages = d->plan->pipeline->stages.of_row[i];
        if (stack == SF_NONE || d->homes[stack] || !stages)
            continue;
        d->homes[stack] = SF_ARRAY(&d->arena, d->splits[stack].nparts, uint32_t);
        for (uint32_t p = 0; p < d->splits[stack].nparts; p++)
            d->homes[stack][p] = SF_NONE;
        for (int64_t row = 0; d->splits[stack].nparts > 0 && row < d->stacks.rows[stack]; row++) {
            uint32_t *home = &d->homes[stack][d->splits[stack].of_row[row]];
            *home = stages[row] < *home ? stages[row] : *home;
        }
    }
}

static sf_pipeline *partition_pipeline(const partitioning *d, sf_arena *arena)
{
    const sf_unstacked *step = &d->out->step;
    const sf_stages *from = &d->plan->pipeline->stages;
    sf_pipeline *out = SF_NEW(arena, sf_pipeline);
    *out = *d->plan->pipeline;
    uint32_t nnodes = (uint32_t)step->graph->nnodes, narguments = step->graph->top->narguments;
    out->stages.of_node = SF_ARRAY(arena, nnodes, uint32_t);
    out->stages.anywhere = SF_ARRAY(arena, nnodes, bool);
    out->stages.late = SF_ARRAY(arena, nnodes, bool);
    out->stages.of_argument = SF_ARRAY(arena, narguments, uint32_t);
    out->stages.of_row = SF_ARRAY(arena, narguments, uint32_t *);
    for (uint32_t n = 0; n < nnodes; n++) {
        sf_unstacked_of of = step->nodes[n];
        out->stages.of_node[n] =
            of.stack == SF_NONE ? from->of_node[of.index] : d->homes[of.stack][of.part];
        out->stages.anywhere[n] = from->anywhere[of.index] || step->graph->nodes[n]->noperands == 0;
        out->stages.late[n] = from->late[of.index];
    }
    for (uint32_t i = 0; i < narguments; i++) {
        sf_unstacked_of of = step->arguments[i];
        out->stages.of_argument[i] =
            of.stack == SF_NONE ? from->of_argument[of.index] : d->homes[of.stack][of.part];
    }
    return out;
}

/* The plan of parts */

/* A node with the same op as one of the step, on tensors with the same layouts. */
static bool is_same_op(const sf_node *a, const sf_node *b)
{
    return a->def == b->def && a->noperands == b->noperands && a->nresults == b->nresults;
}

static sf_share share_of_part(const partitioning *d, const sf_layout *from, uint32_t stack,
                              uint32_t part)
{
    sf_share share = from->axes[d->plan->pipeline->axis];
    if (stack == SF_NONE)
        return share;
    uint64_t hosts = sf_pipe_hosts(&d->plan->pipeline->schedule.pipe, d->homes[stack][part], 0);
    return (sf_share){.on = hosts};
}

static void lay_out_ends(const partitioning *d, sf_plan *plan)
{
    const sf_unstacked *step = &d->out->step;
    int axis = d->plan->pipeline->axis;
    for (uint32_t i = 0; i < step->graph->top->narguments; i++) {
        sf_unstacked_of of = step->arguments[i];
        plan->arguments[i] = d->plan->arguments[of.index];
        plan->arguments[i].axes[axis] = share_of_part(d, &plan->arguments[i], of.stack, of.part);
    }
    for (uint32_t i = 0; i < step->graph->top->nresults; i++) {
        sf_unstacked_of of = step->results[i];
        plan->results[i] = d->plan->results[of.index];
        plan->results[i].axes[axis] = share_of_part(d, &plan->results[i], of.stack, of.part);
    }
}

/* Nodes have the layouts of those of the step; layouts of helper nodes follow. */
static sf_status lay_out_nodes(partitioning *d, sf_plan *plan, sf_diag *diag)
{
    const sf_unstacked *step = &d->out->step;
    const sf_graph *graph = step->graph;
    bool *fixed = SF_ARRAY(&d->arena, graph->nnodes, bool), all = true;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        const sf_node *of = d->graph->nodes[step->nodes[node->id].index];
        uint32_t count = node->noperands + node->nresults;
        fixed[node->id] = is_same_op(node, of) || node->noperands == 0;
        all = all && fixed[node->id];
        if (is_same_op(node, of) && count > 0)
            memcpy(plan->nodes[node->id], d->plan->nodes[of->id], count * sizeof(sf_layout));
    }
    return all ? SF_OK : sf_plan_propagate_around(graph, plan, fixed, diag);
}

static sf_status partition_plan(partitioning *d, sf_diag *diag)
{
    const sf_unstacked *step = &d->out->step;
    const sf_graph *graph = step->graph;
    const sf_plan *from = d->plan;
    sf_plan *plan = d->out->plan = sf_plan_of(graph, &from->mesh, from->graph);
    lay_out_ends(d, plan);
    SF_TRY(lay_out_nodes(d, plan, diag));
    for (sf_value v = 0; v < graph->nvalues; v++)
        if (step->value_of[v] != SF_NONE)
            plan->pinned[v] = from->pinned[step->value_of[v]];
    sf_plan_copy_microbatches(from, plan);
    if (from->recomputed) {
        plan->recompute = sf_arena_string(&plan->arena, from->recompute, strlen(from->recompute));
        plan->recomputed = SF_ARRAY(&plan->arena, graph->nnodes, bool);
        plan->recomputed_per_part =
            from->recomputed_per_part ? SF_ARRAY(&plan->arena, graph->nnodes, bool) : NULL;
        for (uint32_t i = 0; i < graph->top->nnodes; i++) {
            const sf_node *node = sf_top_node(graph, i);
            uint32_t of = step->nodes[node->id].index;
            plan->recomputed[node->id] =
                from->recomputed[of] && is_same_op(node, d->graph->nodes[of]);
            if (from->recomputed_per_part)
                plan->recomputed_per_part[node->id] =
                    plan->recomputed[node->id] && from->recomputed_per_part[of];
        }
    }
    plan->pipeline = partition_pipeline(d, &plan->arena);
    return SF_OK;
}

static bool partitions_any(const sf_plan *plan, const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (plan->arguments[i].axes[plan->pipeline->axis].partition)
            return true;
    return false;
}

sf_status sf_partition_step(const sf_graph *graph, const sf_plan *plan, sf_pool *pool,
                            sf_diag *diag, sf_partitioned_step *out)
{
    sf_status status = SF_OK;
    partitioning d = {.graph = graph, .plan = plan, .out = out};
    *out = (sf_partitioned_step){0};
    if (!partitions_any(plan, graph))
        return SF_OK;
    d.stacks = sf_find_stacks(graph, &d.arena);
    if (split_stacks(&d)) {
        find_homes(&d);
        sf_unstack(graph, &d.stacks, d.splits, pool, &out->step);
        status = partition_plan(&d, diag);
    }
    sf_arena_free(&d.arena);
    if (status != SF_OK)
        sf_partitioned_step_free(out);
    return status;
}

void sf_partitioned_step_free(sf_partitioned_step *partitioned)
{
    sf_plan_free(partitioned->plan);
    if (partitioned->step.graph)
        sf_unstacked_free(&partitioned->step);
    *partitioned = (sf_partitioned_step){0};
}
