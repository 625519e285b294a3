#include "search/stage_estimate.h"

#include <math.h>

#include "ir/uses.h"
#include "plan/pipeline/stage_costs.h"
#include "plan/pipeline_request.h"
#include "plan/recipe/shared_stages.h"
#include "search/price/move_cost.h"
#include "search/stage_loads.h"

/* Of what is kept by what is counted, what stands in memory at the least: loops that read the rest compute it on their way. */
#define SURELY_KEPT 0.75

/* What is rehearsed is known to about so much: less even stages are worth it from then on. */
#define WORTH_IT 0.97

/* What a draft is made of. */
typedef struct drafting {
    const sf_graph *graph;
    sf_load_request load;
    sf_stage_request loads;
    const double *times; /* by node */
    sf_pipeline pipeline;
} drafting;

/* By stage, bytes of a rank that the turns under way keep. */
static double *find_kept(const drafting *d, sf_arena *arena)
{
    const sf_schedule *schedule = &d->pipeline.schedule;
    double *kept = SF_ARRAY(arena, schedule->pipe.nstages, double);
    for (uint32_t i = 0; i < d->graph->top->nnodes; i++) {
        uint32_t node = d->graph->top->nodes[i];
        kept[d->pipeline.stages.of_node[node]] += d->loads.kept[node];
    }
    for (uint32_t s = 0; s < schedule->pipe.nstages; s++)
        kept[s] *= (double)sf_turns_in_flight(schedule, s) /
                   __builtin_popcountll(sf_pipe_hosts(&schedule->pipe, s, 0));
    return kept;
}

static double kept_bytes(const drafting *d, const double *kept, uint32_t group)
{
    const sf_pipe *pipe = &d->pipeline.schedule.pipe;
    double bytes = 0;
    for (uint32_t s = 0; s < pipe->nstages; s++)
        if (sf_pipe_hosts(pipe, s, 0) >> group & 1)
            bytes += kept[s];
    return bytes;
}

static double room_of(const drafting *d, uint32_t group, sf_arena *arena)
{
    return d->load.memory > 0
               ? (double)d->load.memory
               : (double)sf_costs_memory(sf_costs_at(d->load.costs, 0, (int)group, arena));
}

/* Arguments, and gradients where more than one turn adds to them. Where there are no more turns than groups, a group may be done with
 * those of one of its stages before it begins another. */
static double held_bytes(const drafting *d, uint32_t group, sf_arena *arena)
{
    const sf_pipe *pipe = &d->pipeline.schedule.pipe;
    const sf_plan *plan = d->load.plan;
    double bytes = 0, most = 0, all = 0, *gradients = SF_ARRAY(arena, pipe->nstages, double);
    for (uint32_t i = 0; i < d->graph->top->narguments; i++) {
        const sf_argument *argument = &d->graph->arguments[i];
        const sf_layout *layout = &plan->arguments[i];
        uint64_t holders = sf_pipeline_holders(&d->pipeline, d->graph, i);
        if (holders != 0 && !(holders >> group & 1))
            continue;
        bytes += sf_shard_bytes(sf_argument_type(d->graph, i), layout, &plan->mesh);
        if (argument->gradient != SF_NONE)
            gradients[d->pipeline.stages.of_argument[i]] +=
                sf_shard_bytes(sf_type_of(d->graph, argument->gradient), layout, &plan->mesh);
    }
    for (uint32_t s = 0; s < pipe->nstages; s++) {
        most = fmax(most, gradients[s]);
        all += gradients[s];
    }
    return bytes + (pipe->nmicrobatches > pipe->ngroups ? all : pipe->nmicrobatches > 1 ? most : 0);
}

/* Of its memory, what the fullest group may hold. */
static double find_fullest(const drafting *d, sf_arena *arena)
{
    const double *kept = find_kept(d, arena);
    double most = 0;
    for (uint32_t g = 0; g < d->load.groups; g++)
        most =
            fmax(most, (held_bytes(d, g, arena) + kept_bytes(d, kept, g)) / room_of(d, g, arena));
    return most;
}

/* Rehearsal: the tasks of the schedule, by the times of their nodes and of the messages between them. */

static const sf_stage_edge *find_edge(const sf_pipe *pipe, uint32_t from, uint32_t to)
{
    for (uint32_t e = 0; e < pipe->nedges; e++)
        if (pipe->edges[e].from == from && pipe->edges[e].to == to)
            return &pipe->edges[e];
    return NULL;
}

/* Adds what the node makes to the bytes of a step along edges, once for each stage that reads it. */
static void add_messages(const drafting *d, const sf_uses *uses, const sf_node *node,
                         uint32_t *sent, double *ahead, double *back)
{
    const sf_pipe *pipe = &d->pipeline.schedule.pipe;
    const sf_stages *stages = &d->pipeline.stages;
    uint32_t from = stages->of_node[node->id];
    for (sf_value v = node->result; v < node->result + node->nresults; v++)
        for (uint32_t u = uses->first[v]; u < uses->first[v + 1]; u++) {
            const sf_node *reader =
                uses->at[u].node == SF_NONE ? NULL : d->graph->nodes[uses->at[u].node];
            if (!reader || reader->phase == SF_UPDATE || stages->anywhere[reader->id])
                continue;
            uint32_t to = stages->of_node[reader->id];
            bool is_ahead = node->phase == SF_FORWARD;
            const sf_stage_edge *edge =
                is_ahead ? find_edge(pipe, from, to) : find_edge(pipe, to, from);
            if (to == from || !edge || sent[to] == v + 1)
                continue;
            sent[to] = v + 1;
            (is_ahead ? ahead : back)[edge - pipe->edges] +=
                (double)sf_type_bytes(sf_type_of(d->graph, v));
        }
}

/* Of so many bytes of a step: what a rank sends of them in a micro-batch. */
static int64_t *time_messages(const drafting *d, const double *bytes, double unit, sf_arena *arena)
{
    const sf_pipe *pipe = &d->pipeline.schedule.pipe;
    const sf_mesh *mesh = &d->load.plan->mesh;
    double parts = (double)sf_mesh_size(mesh) / mesh->axes[0].size * pipe->nmicrobatches;
    int64_t *out = SF_ARRAY(arena, pipe->nedges, int64_t);
    for (uint32_t e = 0; e < pipe->nedges; e++)
        if (bytes[e] > 0)
            out[e] = (int64_t)(sf_costs_collective(d->load.costs, SF_PERMUTE, 1, bytes[e] / parts) /
                               unit);
    return out;
}

/* Seconds of updates on the group that has most of them: they are no tasks. */
static double find_updates(const drafting *d)
{
    double own[SF_MOST_GROUPS] = {0}, most = 0;
    for (uint32_t i = 0; i < d->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(d->graph, i);
        uint64_t groups = node->phase == SF_UPDATE ? sf_pipeline_groups(&d->pipeline, node->id) : 0;
        for (; groups; groups &= groups - 1)
            own[__builtin_ctzll(groups)] += d->times[node->id];
    }
    for (uint32_t g = 0; g < d->load.groups; g++)
        most = fmax(most, own[g]);
    return most;
}

static double time_schedule(const drafting *d, const sf_pipe_costs *costs, sf_arena *arena)
{
    return (double)sf_schedule_rehearse(&d->pipeline.schedule, costs, arena);
}

/* How long a step takes with messages, and how much longer than without. */
static void rehearse(const drafting *d, sf_arena *arena, double *seconds, double *slower)
{
    *seconds = 0;
    *slower = 1;
    const sf_pipe *pipe = &d->pipeline.schedule.pipe;
    const bool *moving = sf_find_moving(d->graph, arena);
    sf_uses uses = sf_uses_of(d->graph, arena);
    uint32_t *sent = SF_ARRAY(arena, pipe->nstages, uint32_t);
    double *ahead = SF_ARRAY(arena, pipe->nedges, double),
           *back = SF_ARRAY(arena, pipe->nedges, double), all = 0;
    for (uint32_t i = 0; i < d->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(d->graph, i);
        if (node->phase == SF_UPDATE || d->pipeline.stages.anywhere[node->id])
            continue;
        all += d->times[node->id];
        if (moving[node->id])
            add_messages(d, &uses, node, sent, ahead, back);
    }
    if (!(all > 0))
        return;
    sf_pipe_costs costs = sf_costs_of_stages(d->graph, &d->pipeline.stages, pipe, d->times, arena);
    double unit = 1e-6 * all / pipe->nmicrobatches, alone = time_schedule(d, &costs, arena);
    costs.ahead = time_messages(d, ahead, unit, arena);
    costs.back = time_messages(d, back, unit, arena);
    double together = time_schedule(d, &costs, arena), updates = find_updates(d);
    *seconds = unit * together + updates;
    *slower = alone > 0 ? *seconds / (unit * alone + updates) : 1;
}

/* Stages are as even as they can be, or, where messages take long, less even for the sake of what they send: as the rehearsal
 * says, and where the fullest group does not hold too much then. */
static sf_status cut_as_suits(const sf_prospects *p, const sf_spec *spec, drafting *d,
                              sf_arena *arena, sf_diag *diag, double *waits)
{
    static const double tolerances[] = {0.1, 0.3, 1}; /* beside the usual one */
    sf_pipeline_costs costs = {d->times, d->load.recomputed, &d->loads};
    double seconds, slower;
    SF_TRY(sf_pipeline_by(p->graph, spec, &costs, arena, diag, &d->pipeline));
    rehearse(d, arena, &seconds, waits);
    bool may_differ = WORTH_IT * *waits > 1;
    double fullest = may_differ ? fmax(SF_LIKELY_FULL, find_fullest(d, arena)) : 0;
    for (size_t i = 0; may_differ && i < sizeof tolerances / sizeof tolerances[0]; i++) {
        drafting other = *d;
        d->loads.tolerance = tolerances[i];
        if (sf_pipeline_by(p->graph, spec, &costs, arena, NULL, &other.pipeline) != SF_OK)
            break;
        double now;
        rehearse(&other, arena, &now, &slower);
        if (now >= WORTH_IT * seconds || find_fullest(&other, arena) > fullest)
            break;
        d->pipeline = other.pipeline;
        seconds = now;
        *waits = slower;
        may_differ = WORTH_IT * slower > 1;
    }
    return SF_OK;
}

static sf_status cut_pipeline(const sf_prospects *p, const sf_prospect *c, drafting *d,
                              sf_arena *arena, sf_diag *diag, double *waits)
{
    sf_spec spec = {.stages = {.kind = SF_STAGES_COUNT, .count = c->stages},
                    .schedule = c->schedule,
                    .micro_batches = (int)c->microbatches};
    if (p->options->stage_scopes)
        spec.stages = *p->options->stage_scopes;
    SF_TRY(sf_stage_loads(&d->load, arena, diag, &d->loads));
    SF_TRY(cut_as_suits(p, &spec, d, arena, diag, waits));
    d->pipeline.axis = 0;
    return SF_OK;
}

static void find_shares(const drafting *d, sf_arena *arena, sf_draft *out)
{
    const double *by_stage = find_kept(d, arena);
    for (uint32_t g = 0; g < d->load.groups; g++) {
        double room = room_of(d, g, arena);
        double held = held_bytes(d, g, arena), kept = kept_bytes(d, by_stage, g);
        out->held = fmax(out->held, held / room);
        out->mean += (held + SURELY_KEPT * kept) / room / d->load.groups;
        out->least = fmax(out->least, (held + SURELY_KEPT * kept) / room);
        out->about = fmax(out->about, (held + kept) / room);
    }
}

static double find_slower(const drafting *d)
{
    double busy[SF_MOST_GROUPS] = {0}, all = 0, most = 0, speed = 0;
    for (uint32_t i = 0; i < d->graph->top->nnodes; i++) {
        uint32_t node = d->graph->top->nodes[i];
        uint64_t groups = sf_pipeline_groups(&d->pipeline, node);
        bool recomputed = d->load.recomputed && d->load.recomputed[node];
        all += d->times[node];
        for (uint32_t g = 0; g < d->load.groups && !d->pipeline.stages.anywhere[node]; g++)
            if (groups >> g & 1)
                busy[g] += (recomputed ? 2 : 1) * d->times[node] / __builtin_popcountll(groups);
    }
    for (uint32_t g = 0; g < d->load.groups; g++) {
        most = fmax(most, busy[g] / d->load.speeds[g]);
        speed += d->load.speeds[g];
    }
    return all > 0 ? fmax(1, most * speed / all) : 1;
}

static sf_status put_in_stages(const sf_prospects *p, const sf_prospect *c, drafting *d,
                               sf_arena *arena, sf_diag *diag, sf_draft *out)
{
    SF_TRY(cut_pipeline(p, c, d, arena, diag, &out->waits));
    d->pipeline.split_bytes = sf_split_bytes(d->load.costs, &out->plan->mesh, d->pipeline.axis);
    SF_TRY(sf_plan_set_pipeline(out->plan, p->graph, &d->pipeline, diag));
    return sf_plan_split_sets(p->graph, out->plan, diag);
}

sf_status sf_draft_make(const sf_prospects *p, const sf_prospect *c, const sf_stage_way *way,
                        const sf_costs *costs, bool to_lower, sf_arena *arena, sf_diag *diag,
                        sf_draft *out)
{
    *out = (sf_draft){0};
    SF_TRY((to_lower ? sf_prospect_plan(p, c, diag, &out->plan)
                     : sf_prospect_layouts(p, c, diag, &out->plan)));
    drafting d = {.graph = p->graph,
                  .load = {.efforts = p->efforts,
                           .plan = out->plan,
                           .costs = costs,
                           .schedule = c->schedule,
                           .stages = c->stages,
                           .groups = (uint32_t)c->groups,
                           .microbatches = c->microbatches,
                           .speeds = c->speeds,
                           .limited = way->limited,
                           .memory = p->options->limited ? p->options->memory : 0,
                           .recomputed = way->recomputed},
                  .times = sf_node_times(p->efforts, out->plan, costs, arena)};
    sf_status status = put_in_stages(p, c, &d, arena, diag, out);
    if (status != SF_OK) {
        sf_plan_free(out->plan);
        out->plan = NULL;
        return status;
    }
    out->cut = d.pipeline.stages.of_node;
    out->slower = find_slower(&d);
    find_shares(&d, arena, out);
    return SF_OK;
}
