#include "local/time/schedule_step.h"

#include <string.h>

#include "base/mem.h"
#include "local/time/pipeline_step.h"
#include "local/time/stage_groups.h"
#include "op/flops.h"
#include "op/op.h"
#include "plan/co_shard.h"

typedef struct timing {
    const sf_graph *step; /* so far, */
    const sf_plan *space; /* with its plan, */
    /* the split of its batch into micro-batches, if that is needed before; else NULL */
    sf_plan *time;
    sf_pipeline pipeline; /* and the stages of its nodes, where it has some */
    const sf_plan *said;
    sf_plan *within; /* that was made on the way */
    sf_pool *pool;
    sf_arena arena;
    sf_diag *diag;
    sf_timed *out;
} timing;

/* The pipeline of a step that is made from another: nodes are in the stages of the nodes for which
 * they were made; others may be in any. Loops are no part of a late sum. */
static void carry_pipeline(timing *g, const sf_graph *graph, const uint32_t *node_of)
{
    const sf_stages of = g->pipeline.stages;
    sf_stages *out = &g->pipeline.stages;
    if (!g->said->pipeline)
        return;
    out->of_node = SF_ARRAY(&g->arena, graph->nnodes, uint32_t);
    out->anywhere = SF_ARRAY(&g->arena, graph->nnodes, bool);
    out->late = SF_ARRAY(&g->arena, graph->nnodes, bool);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        uint32_t origin = node_of[node->id];
        out->of_node[node->id] = origin == SF_NONE ? 0 : of.of_node[origin];
        out->anywhere[node->id] = origin == SF_NONE || of.anywhere[origin];
        out->late[node->id] = origin != SF_NONE && of.late[origin] && !sf_is_control(node);
    }
}

static sf_status partition_stacks(timing *g)
{
    sf_partitioned_step *partitioned = &g->out->partitioned;
    if (g->said->pipeline)
        SF_TRY(sf_partition_step(g->step, g->space, g->pool, g->diag, partitioned));
    if (partitioned->plan) {
        g->step = partitioned->step.graph;
        g->space = g->said = partitioned->plan;
    }
    if (g->said->pipeline)
        g->pipeline = *g->said->pipeline;
    return SF_OK;
}

static void add_clones(timing *g)
{
    sf_recomputed_step *recomputed_step = &g->out->recomputed_step;
    if (!g->said->recomputed)
        return;
    *recomputed_step = sf_recompute_step(g->step, g->space, g->pool);
    g->step = recomputed_step->graph;
    g->space = recomputed_step->plan;
    carry_pipeline(g, g->step, recomputed_step->node_of);
}

/* The layouts of a plan within a pipeline rank: all that it holds. */
static void stay_within_group(timing *g)
{
    sf_plan *out = sf_plan_copy(g->space, g->step);
    sf_plan_forget_axis(out, g->step, g->pipeline.axis);
    memcpy(out->pinned, g->space->pinned, g->step->nvalues * sizeof *out->pinned);
    g->space = g->within = out;
}

/* Splits stages that several pipeline ranks run together, one set of pipeline ranks after the
 * other. */
static sf_status cut_sets(timing *g, uint32_t group)
{
    sf_timed *out = g->out;
    uint64_t *sets = SF_ARRAY(&g->arena, g->pipeline.schedule.pipe.nstages, uint64_t);
    uint32_t count = sf_pipeline_sets(&g->pipeline, sets);
    if (count > 0)
        out->grouped = sf_alloc(count * sizeof *out->grouped);
    for (uint32_t i = 0; i < count; i++) {
        sf_stages stages;
        sf_microbatched *next = &out->grouped[i];
        *next = (sf_microbatched){0};
        out->ngrouped = i + 1;
        SF_TRY(sf_groups_new(g->step, g->space, &g->pipeline, sets[i], group, g->pool, &g->arena,
                             g->diag, next, &stages));
        g->pipeline.stages = stages;
        g->step = next->graph;
        g->space = next->plan;
    }
    return SF_OK;
}

/* Nodes with different numbers are in different loops: by stage and pass, as a loop is in one task
 * as a whole; and invariant nodes from those that depend on the micro-batch. */
static const uint32_t *find_apart(timing *g)
{
    const sf_block *top = g->step->top;
    uint32_t *apart = SF_ARRAY(&g->arena, g->step->nnodes, uint32_t);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(g->step, i);
        uint32_t count = node->noperands + node->nresults;
        bool microbatches = g->time && !sf_layouts_are_replicated(g->time->nodes[node->id], count);
        if (g->said->pipeline && !g->pipeline.stages.anywhere[node->id])
            apart[node->id] =
                1 + g->pipeline.stages.of_node[node->id] * SF_PHASE_COUNT + node->phase;
        apart[node->id] = 2 * apart[node->id] + microbatches;
    }
    return apart;
}

/* Nodes after all micro-batches, and after accumulated or concatenated values, are not in an inner
 * loop: it would need all micro-batches inside. */
static void leave_behind(timing *g, bool *may)
{
    const sf_block *top = g->step->top;
    bool *after = SF_ARRAY(&g->arena, g->step->nnodes, bool);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(g->step, i);
        const sf_layout *layouts = g->time->nodes[node->id];
        for (uint32_t o = 0; o < node->noperands; o++) {
            const sf_node *maker = sf_maker(g->step, node->operands[o]);
            bool is_output =
                !sf_layout_is_replicated(sf_plan_layout(g->time, g->step, node->operands[o])) &&
                sf_layout_is_replicated(&layouts[o]);
            after[node->id] = after[node->id] || is_output || (maker && after[maker->id]);
        }
        if (after[node->id] && sf_layouts_are_replicated(layouts, node->noperands + node->nresults))
            may[node->id] = false;
    }
}

/* Collectives of pipeline ranks that share a stage are in no inner loop: a loop recomputes what it
 * reads, also of stages that only some of these pipeline ranks have, which would enter a collective
 * alone. */
static void leave_shared(timing *g, bool *may)
{
    const sf_block *top = g->step->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(g->step, i);
        may[node->id] = may[node->id] && !sf_is_between_groups(node);
    }
}

/* The same loops, for the plan of the batch in micro-batches. */
static sf_status carry_turns(timing *g, const sf_microbatch_request *request)
{
    sf_microbatched same;
    if (!g->time)
        return SF_OK;
    SF_TRY(sf_microbatched_new(g->step, g->time, request, g->pool, g->diag, &same));
    sf_plan_free(g->time);
    g->time = same.plan;
    sf_graph_free(same.graph);
    return SF_OK;
}

static sf_status cut_factor(timing *g, int index)
{
    const sf_co_shard *said = &g->said->co_shards[index];
    sf_microbatched *next;
    sf_microbatch_request request = {
        .recipe = said->by, .in = said->in, .microbatches = said->chunks, .apart = find_apart(g)};
    bool *may;
    SF_TRY(sf_co_shard_nodes(g->step, g->said, index, &g->arena, g->diag, &may));
    if (said->chunks == 1)
        return SF_OK;
    next = &g->out->sharded[g->out->nsharded++];
    *next = (sf_microbatched){0};
    leave_shared(g, may);
    if (g->time)
        leave_behind(g, may);
    request.may = may;
    SF_TRY(sf_microbatched_new(g->step, g->space, &request, g->pool, g->diag, next));
    SF_TRY(carry_turns(g, &request));
    g->step = next->graph;
    g->space = next->plan;
    carry_pipeline(g, g->step, next->node_of);
    return SF_OK;
}

static sf_status cut_factors(timing *g)
{
    const sf_plan *said = g->said;
    if (said->nco_shards == 0)
        return SF_OK;
    if (said->micro_batches > 1)
        SF_TRY(sf_microbatch_plan(g->step, g->space, said->pipeline ? &g->pipeline.stages : NULL,
                                  said->micro_batches, g->pool, g->diag, &g->time));
    g->out->sharded = sf_alloc((size_t)said->nco_shards * sizeof *g->out->sharded);
    for (int i = 0; i < said->nco_shards; i++)
        SF_TRY(cut_factor(g, i));
    return SF_OK;
}

/* Parts of stacks that are distributed; or NULL. */
static const sf_unstacked *parts_of(const sf_timed *timed)
{
    return timed->partitioned.plan ? &timed->partitioned.step : NULL;
}

static sf_status cut_batch(timing *g, uint32_t group)
{
    sf_microbatched *microbatched = &g->out->microbatched;
    sf_microbatch_request request = {.microbatches = g->said->micro_batches, .time = g->time};
    g->time = NULL; /* it is theirs */
    if (g->said->pipeline)
        SF_TRY(sf_pipe_step_new(g->step, g->space, &g->pipeline, parts_of(g->out), group,
                                request.time, g->pool, g->diag, microbatched));
    else if (request.microbatches > 1)
        SF_TRY(sf_microbatched_new(g->step, g->space, &request, g->pool, g->diag, microbatched));
    else
        return SF_OK;
    g->step = microbatched->graph;
    g->space = microbatched->plan;
    return SF_OK;
}

static sf_status go_in_time(timing *g, int rank)
{
    uint32_t group = 0;
    SF_TRY(partition_stacks(g));
    add_clones(g);
    if (g->said->pipeline) {
        group = (uint32_t)sf_mesh_coordinate(&g->said->mesh, rank, g->pipeline.axis);
        SF_TRY(cut_sets(g, group));
        stay_within_group(g);
    }
    SF_TRY(cut_factors(g));
    return cut_batch(g, group);
}

sf_status sf_put_in_time(const sf_graph **whole, const sf_plan **plan, int rank, sf_pool *pool,
                         sf_diag *diag, sf_timed *out)
{
    out->given = *whole;
    timing g = {
        .step = *whole, .space = *plan, .said = *plan, .pool = pool, .diag = diag, .out = out};
    sf_status status = go_in_time(&g, rank);
    *whole = g.step;
    *plan = g.space;
    sf_plan_free(g.time);
    sf_plan_free(g.within);
    sf_arena_free(&g.arena);
    return status;
}

void sf_timed_free(sf_timed *timed)
{
    sf_microbatched_free(&timed->microbatched);
    for (uint32_t i = 0; i < timed->nsharded; i++)
        sf_microbatched_free(&timed->sharded[i]);
    sf_free(timed->sharded);
    for (uint32_t i = 0; i < timed->ngrouped; i++)
        sf_microbatched_free(&timed->grouped[i]);
    sf_free(timed->grouped);
    sf_recomputed_step_free(&timed->recomputed_step);
    sf_partitioned_step_free(&timed->partitioned);
}

/* The step to which recomputed clones were added. */
static const sf_graph *original_step(const sf_timed *timed)
{
    const sf_unstacked *parts = parts_of(timed);
    return parts ? parts->graph : timed->given;
}

sf_status sf_check_timed(const sf_timed *timed, sf_diag *diag)
{
    const sf_recomputed_step *recomputed_step = &timed->recomputed_step;
    return recomputed_step->graph ? sf_check_recomputed(original_step(timed), recomputed_step, diag)
                                  : SF_OK;
}

sf_value sf_timed_value_of_step(const sf_timed *timed, sf_value whole)
{
    if (whole != SF_NONE && timed->microbatched.graph)
        whole = timed->microbatched.value_of[whole];
    for (uint32_t i = timed->nsharded; i-- > 0 && whole != SF_NONE;)
        whole = timed->sharded[i].value_of[whole];
    for (uint32_t i = timed->ngrouped; i-- > 0 && whole != SF_NONE;)
        whole = timed->grouped[i].value_of[whole];
    const sf_unstacked *parts = parts_of(timed);
    if (whole != SF_NONE && timed->recomputed_step.graph)
        whole = sf_recomputed_of(original_step(timed), &timed->recomputed_step, whole);
    return whole != SF_NONE && parts ? parts->value_of[whole] : whole;
}
