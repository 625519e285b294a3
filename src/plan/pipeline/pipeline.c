#include "plan/pipeline/pipeline.h"

#include <string.h>

#include "plan/pipeline/schedules.h"
#include "plan/pipeline/stage_costs.h"

static sf_stages copy_stages(const sf_stages *from, const sf_graph *graph, sf_arena *arena)
{
    sf_stages out = {.count = from->count};
    out.of_node = sf_arena_copy(arena, from->of_node, graph->nnodes * sizeof *out.of_node);
    out.anywhere = sf_arena_copy(arena, from->anywhere, graph->nnodes * sizeof *out.anywhere);
    out.late = sf_arena_copy(arena, from->late, graph->nnodes * sizeof *out.late);
    out.of_argument =
        sf_arena_copy(arena, from->of_argument, graph->top->narguments * sizeof *out.of_argument);
    out.of_row = SF_ARRAY(arena, graph->top->narguments, uint32_t *);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (from->of_row[i])
            out.of_row[i] =
                sf_arena_copy(arena, from->of_row[i],
                              (size_t)sf_argument_type(graph, i)->dims[0] * sizeof *out.of_row[i]);
    return out;
}

static sf_schedule copy_schedule(const sf_schedule *from, sf_arena *arena)
{
    const sf_pipe *pipe = &from->pipe;
    size_t nhosts = (size_t)pipe->nstages * pipe->nmicrobatches;
    sf_schedule out = *from;
    out.pipe.has_backward =
        sf_arena_copy(arena, pipe->has_backward, pipe->nstages * sizeof *pipe->has_backward);
    out.pipe.edges = sf_arena_copy(arena, pipe->edges, pipe->nedges * sizeof *pipe->edges);
    out.pipe.hosts = sf_arena_copy(arena, pipe->hosts, nhosts * sizeof *pipe->hosts);
    out.ntasks = sf_arena_copy(arena, from->ntasks, pipe->ngroups * sizeof *out.ntasks);
    out.tasks = SF_ARRAY(arena, pipe->ngroups, sf_stage_task *);
    for (uint32_t g = 0; g < pipe->ngroups; g++)
        out.tasks[g] = sf_arena_copy(arena, from->tasks[g], from->ntasks[g] * sizeof *out.tasks[g]);
    return out;
}

sf_pipeline *sf_pipeline_copy(const sf_pipeline *pipeline, const sf_graph *graph, sf_arena *arena)
{
    sf_pipeline *out = SF_NEW(arena, sf_pipeline);
    *out = (sf_pipeline){.axis = pipeline->axis,
                         .stages = copy_stages(&pipeline->stages, graph, arena),
                         .schedule = copy_schedule(&pipeline->schedule, arena),
                         .name = sf_arena_string(arena, pipeline->name, strlen(pipeline->name)),
                         .split_bytes = pipeline->split_bytes};
    return out;
}

void sf_pipe_of_stages(const sf_graph *graph, const sf_stages *stages, uint32_t nmicrobatches,
                       uint32_t ngroups, sf_arena *arena, sf_pipe *out)
{
    uint32_t n = stages->count, nedges = 0;
    bool *reads = SF_ARRAY(arena, (size_t)n * n, bool), *backward = SF_ARRAY(arena, n, bool);
    sf_stage_edge *edges = SF_ARRAY(arena, (size_t)n * n, sf_stage_edge);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        uint32_t stage = stages->of_node[node->id];
        if (stages->anywhere[node->id])
            continue;
        backward[stage] = backward[stage] || node->phase == SF_BACKWARD;
        for (uint32_t o = 0; o < node->noperands; o++) {
            const sf_node *maker = sf_maker(graph, node->operands[o]);
            if (maker && !stages->anywhere[maker->id] && node->phase == maker->phase) {
                uint32_t other = stages->of_node[maker->id];
                bool ahead = node->phase == SF_FORWARD;
                reads[ahead ? other * n + stage : stage * n + other] |= node->phase != SF_UPDATE;
            }
        }
    }
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t t = s + 1; t < n; t++)
            if (reads[s * n + t])
                edges[nedges++] = (sf_stage_edge){s, t};
    *out = (sf_pipe){.nstages = n,
                     .nmicrobatches = nmicrobatches,
                     .ngroups = ngroups,
                     .has_backward = backward,
                     .nedges = nedges,
                     .edges = edges};
}

uint64_t sf_pipeline_holders(const sf_pipeline *pipeline, const sf_graph *graph, uint32_t argument)
{
    if (sf_is_handed_in(&graph->arguments[argument]))
        return 0;
    return sf_pipe_hosts(&pipeline->schedule.pipe, pipeline->stages.of_argument[argument], 0);
}

uint32_t sf_pipeline_sets(const sf_pipeline *pipeline, uint64_t *out)
{
    const sf_pipe *pipe = &pipeline->schedule.pipe;
    uint32_t count = 0;
    for (uint32_t s = 0; s < pipe->nstages; s++) {
        uint64_t hosts = sf_pipe_hosts(pipe, s, 0);
        bool known = !sf_is_several(hosts);
        for (uint32_t i = 0; i < count; i++)
            known = known || out[i] == hosts;
        if (!known)
            out[count++] = hosts;
    }
    return count;
}

static bool same_pipe(const sf_pipe *a, const sf_pipe *b)
{
    return a->nstages == b->nstages && a->nmicrobatches == b->nmicrobatches &&
           a->ngroups == b->ngroups;
}

/* A table is of the step's own edges and passes, whatever its text says of them. */
static sf_status take_table(const sf_schedule *table, const sf_pipe *pipe, sf_arena *arena,
                            sf_diag *diag, sf_schedule *out)
{
    if (!same_pipe(&table->pipe, pipe))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "the schedule is for %u stages, %u micro-batches and %u pipeline ranks; "
                       "the plan has %u, %u and %u",
                       table->pipe.nstages, table->pipe.nmicrobatches, table->pipe.ngroups,
                       pipe->nstages, pipe->nmicrobatches, pipe->ngroups);
    for (uint32_t s = 0; s < pipe->nstages; s++)
        if (table->pipe.has_backward[s] != pipe->has_backward[s])
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                           "the schedule has %s backward pass of stage %u, and the step has %s",
                           table->pipe.has_backward[s] ? "a" : "no", s,
                           pipe->has_backward[s] ? "one" : "none");
    *out = copy_schedule(table, arena);
    out->pipe.nedges = pipe->nedges;
    out->pipe.edges = pipe->edges;
    return sf_schedule_check(out, diag);
}

/* The share of a stage on several pipeline ranks is split over them, and its set is the same in
 * every micro-batch. */
static sf_status check_sets(const sf_pipe *pipe, sf_diag *diag)
{
    for (uint32_t s = 0; s < pipe->nstages; s++)
        for (uint32_t t = 1; t < pipe->nmicrobatches; t++) {
            uint64_t first = sf_pipe_hosts(pipe, s, 0), hosts = sf_pipe_hosts(pipe, s, t);
            if (hosts != first && (sf_is_several(hosts) || sf_is_several(first)))
                return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                               "stage %u is run by several pipeline ranks together, and by others "
                               "in micro-batch "
                               "%u than in micro-batch 0: its state is sharded over its pipeline "
                               "ranks, so they "
                               "must be the same in all micro-batches",
                               s, t);
        }
    return SF_OK;
}

/* Times of the stages' passes in a micro-batch, relative to the longest, divided among their
 * pipeline ranks. Recompute is part of the backward pass, too. */
static const int64_t *find_times(const sf_graph *graph, const sf_stages *stages,
                                 const sf_pipe *pipe, const sf_schedule_choice *choice,
                                 sf_arena *arena)
{
    enum { LONGEST = 1000 };
    const double *work = choice->time ? choice->time : sf_times_by_ops(graph, arena);
    const bool *moving = sf_find_moving(graph, arena);
    double *sums = SF_ARRAY(arena, pipe->nstages * SF_PASSES, double), most = 0;
    int64_t *times = SF_ARRAY(arena, pipe->nstages * SF_PASSES, int64_t);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        uint32_t node = graph->top->nodes[i];
        double *of = &sums[stages->of_node[node] * SF_PASSES];
        if (sf_makes_once(stages, graph->nodes[node]) || !moving[node] || stages->anywhere[node])
            continue;
        of[graph->nodes[node]->phase == SF_FORWARD ? SF_PASS_FORWARD : SF_PASS_BACKWARD] +=
            work[node];
        of[SF_PASS_BACKWARD] += choice->recomputed && choice->recomputed[node] ? work[node] : 0;
    }
    for (uint32_t i = 0; i < pipe->nstages * SF_PASSES; i++) {
        sums[i] /= __builtin_popcountll(sf_pipe_hosts(pipe, i / SF_PASSES, 0));
        most = sums[i] > most ? sums[i] : most;
    }
    for (uint32_t i = 0; i < pipe->nstages * SF_PASSES; i++)
        times[i] = most > 0 ? 1 + (int64_t)(LONGEST * sums[i] / most) : 1;
    return times;
}

/* Each stage on its pipeline ranks in all micro-batches, in an order of the search. */
static sf_status find_order(const sf_graph *graph, const sf_stages *stages, sf_pipe *pipe,
                            const uint64_t *groups, const sf_schedule_choice *choice,
                            sf_arena *arena, sf_diag *diag, sf_schedule *out)
{
    uint64_t *hosts = SF_ARRAY(arena, (size_t)pipe->nstages * pipe->nmicrobatches, uint64_t),
             any = 0;
    for (size_t i = 0; i < (size_t)pipe->nstages * pipe->nmicrobatches; i++)
        any |= hosts[i] = groups[i / pipe->nmicrobatches];
    pipe->hosts = hosts;
    SF_TRY(sf_pipe_check(pipe, diag));
    if (any != sf_all_groups(pipe->ngroups))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "pipeline rank %d has no stage",
                       __builtin_ctzll(~any));
    const int64_t *held =
        sf_kept_of_stages(graph, stages, pipe->nmicrobatches, choice->recomputed, arena);
    return sf_schedule_find(pipe, find_times(graph, stages, pipe, choice, arena), held, arena, out,
                            diag);
}

/* The first and the last stage on all groups, the others on one each. */
static sf_status interlace(const char *name, const sf_graph *graph, const sf_stages *stages,
                           sf_pipe *pipe, const sf_schedule_choice *choice, sf_arena *arena,
                           sf_diag *diag, sf_schedule *out)
{
    uint64_t *groups = SF_ARRAY(arena, pipe->nstages, uint64_t);
    if (pipe->nstages != pipe->ngroups + 2)
        return sf_fail(
            diag, SF_EUSAGE, SF_NOWHERE,
            "%s on %u pipeline ranks has %u stages, of which all share the first and the last, "
            "not %u",
            name, pipe->ngroups, pipe->ngroups + 2, pipe->nstages);
    for (uint32_t s = 0; s < pipe->nstages; s++)
        groups[s] =
            s > 0 && s + 1 < pipe->nstages ? UINT64_C(1) << (s - 1) : sf_all_groups(pipe->ngroups);
    return find_order(graph, stages, pipe, groups, choice, arena, diag, out);
}

/* Stages round-robin over the pipeline ranks. */
static sf_status order_in_rounds(const sf_graph *graph, const sf_stages *stages, sf_pipe *pipe,
                                 const sf_schedule_choice *choice, sf_arena *arena, sf_diag *diag,
                                 sf_schedule *out)
{
    uint64_t *groups = SF_ARRAY(arena, pipe->nstages, uint64_t);
    for (uint32_t s = 0; s < pipe->nstages; s++)
        groups[s] = UINT64_C(1) << s % pipe->ngroups;
    return find_order(graph, stages, pipe, groups, choice, arena, diag, out);
}

sf_status sf_pipeline_make(const sf_graph *graph, uint32_t nstages, const uint32_t *forward,
                           uint32_t ngroups, uint32_t nmicrobatches,
                           const sf_schedule_choice *choice, sf_arena *arena, sf_diag *diag,
                           sf_pipeline *out)
{
    sf_pipe pipe;
    *out = (sf_pipeline){.name = ""};
    SF_TRY(sf_stages_complete(graph, nstages, forward, arena, diag, &out->stages));
    sf_pipe_of_stages(graph, &out->stages, nmicrobatches, ngroups, arena, &pipe);
    if (choice->groups)
        return find_order(graph, &out->stages, &pipe, choice->groups, choice, arena, diag,
                          &out->schedule);
    sf_schedule_kind kind = {0};
    if (choice->name)
        SF_TRY(sf_schedule_parse(choice->name, &kind, diag));
    const sf_schedule_info *info = sf_schedule_get(kind.name);
    if (choice->table)
        SF_TRY(take_table(choice->table, &pipe, arena, diag, &out->schedule));
    else if (info->goes_by_times && info->shared > 0)
        SF_TRY(
            interlace(info->name, graph, &out->stages, &pipe, choice, arena, diag, &out->schedule));
    else if (info->goes_by_times)
        SF_TRY(order_in_rounds(graph, &out->stages, &pipe, choice, arena, diag, &out->schedule));
    else
        SF_TRY(sf_schedule_make(kind, &pipe, NULL, arena, &out->schedule, diag));
    if (choice->name)
        out->name = sf_arena_string(arena, choice->name, strlen(choice->name));
    return check_sets(&out->schedule.pipe, diag);
}
