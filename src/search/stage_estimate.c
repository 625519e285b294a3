#include "search/stage_estimate.h"

#include <math.h>

#include "plan/pipeline_request.h"
#include "plan/recipe/shared_stages.h"
#include "search/price/move_cost.h"
#include "search/stage_loads.h"

/* Of what is kept by what is counted, what stands in memory at the least: loops that read the rest compute it on their way. */
#define SURELY_KEPT 0.75

/* What a draft is made of. */
typedef struct drafting {
    const sf_graph *graph;
    sf_load_request load;
    sf_stage_request loads;
    const double *times; /* by node */
    sf_pipeline pipeline;
} drafting;

static sf_status cut_pipeline(const sf_prospects *p, const sf_prospect *c, drafting *d,
                              sf_arena *arena, sf_diag *diag)
{
    sf_spec spec = {.stages = {.kind = SF_STAGES_COUNT, .count = c->stages},
                    .schedule = c->schedule,
                    .micro_batches = (int)c->microbatches};
    sf_pipeline_costs costs = {d->times, d->load.recomputed, &d->loads};
    if (p->options->stage_scopes)
        spec.stages = *p->options->stage_scopes;
    SF_TRY(sf_stage_loads(&d->load, arena, diag, &d->loads));
    SF_TRY(sf_pipeline_by(p->graph, &spec, &costs, arena, diag, &d->pipeline));
    d->pipeline.axis = 0;
    return SF_OK;
}

/* Arguments, and gradients where more than one turn adds to them. Where there are no more turns than groups, a group may be done with
 * those of one of its stages before it begins another. */
static double held_bytes(const drafting *d, const sf_plan *plan, uint32_t group, sf_arena *arena)
{
    const sf_pipe *pipe = &d->pipeline.schedule.pipe;
    double bytes = 0, most = 0, all = 0, *gradients = SF_ARRAY(arena, pipe->nstages, double);
    for (uint32_t i = 0; i < d->graph->top->narguments; i++) {
        const sf_argument *argument = &d->graph->arguments[i];
        const sf_layout *layout = &plan->arguments[i];
        uint64_t holders = sf_pipeline_holders(plan->pipeline, d->graph, i);
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

static void find_shares(const drafting *d, sf_arena *arena, sf_draft *out)
{
    const double *by_stage = find_kept(d, arena);
    for (uint32_t g = 0; g < d->load.groups; g++) {
        double room = d->load.memory > 0
                          ? (double)d->load.memory
                          : (double)sf_costs_memory(sf_costs_at(d->load.costs, 0, (int)g, arena));
        double held = held_bytes(d, out->plan, g, arena), kept = kept_bytes(d, by_stage, g);
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
    SF_TRY(cut_pipeline(p, c, d, arena, diag));
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
