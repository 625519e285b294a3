#include "plan/pipeline_request.h"

#include <string.h>

#include "plan/pipeline/recycling.h"
#include "plan/pipeline/schedules.h"
#include "plan/pipeline/stage_costs.h"

/* Stages may take so much longer than they must, to send less. */
#define TOLERANCE 0.03

/* The inputs of a pipeline. */
typedef struct asking {
    const sf_graph *graph;
    const sf_spec *spec;
    const sf_pipeline_costs *costs;
    sf_arena *arena;
    sf_diag *diag;
} asking;

uint32_t sf_pipeline_micro_batches(const sf_spec *spec)
{
    if (spec->micro_batches <= 1 && spec->table)
        return spec->table->pipe.nmicrobatches;
    return spec->micro_batches > 1 ? (uint32_t)spec->micro_batches : 1;
}

static const double *find_times(const asking *a)
{
    return a->costs->time ? a->costs->time : sf_times_by_ops(a->graph, a->arena);
}

/* By node of the forward pass, with its gradient, and a second time where it is recomputed. */
static double *find_own_times(const asking *a, const double *time)
{
    double *own = sf_forward_times(a->graph, time, a->arena);
    for (uint32_t n = 0; a->costs->recomputed && n < a->graph->nnodes; n++)
        own[n] += a->costs->recomputed[n] ? time[n] : 0;
    return own;
}

/* So many stages, by the times of nodes: `own`. */
static sf_stage_request request_of(const asking *a, uint32_t count, const double *own)
{
    sf_stage_request cut = a->costs->loads ? *a->costs->loads : (sf_stage_request){0};
    cut.count = count;
    cut.time = own;
    cut.tolerance = cut.tolerance > 0 ? cut.tolerance : TOLERANCE;
    cut.microbatches = sf_pipeline_micro_batches(a->spec);
    return cut;
}

/* So many stages, of which each takes as long as its speed says; `beside` (by node, or NULL) takes no time. */
static sf_status cut_evenly(const asking *a, uint32_t count, const double *speed,
                            const bool *beside, uint32_t **forward)
{
    double *own = find_own_times(a, find_times(a));
    for (uint32_t n = 0; beside && n < a->graph->nnodes; n++)
        own[n] = beside[n] ? 0 : own[n];
    sf_stage_request cut = request_of(a, count, own);
    cut.beside = beside;
    cut.speed = speed ? speed : cut.speed;
    sf_stage_cut found;
    SF_TRY(sf_cut_step(a->graph, &cut, a->arena, a->diag, &found));
    *forward = found.forward;
    return SF_OK;
}

/* The vocabulary in a stage before all others, and one after them. */
static sf_status cut_with_ends(const asking *a, uint32_t count, uint32_t **forward)
{
    bool *first, *last, *ends = SF_ARRAY(a->arena, a->graph->nnodes, bool);
    SF_TRY(sf_find_vocabulary(a->graph, a->arena, a->diag, &first, &last));
    for (uint32_t n = 0; n < a->graph->nnodes; n++)
        ends[n] = first[n] || last[n];
    SF_TRY(cut_evenly(a, count, NULL, ends, forward));
    for (uint32_t n = 0; n < a->graph->nnodes; n++) {
        uint32_t *stage = &(*forward)[n];
        if (ends[n])
            *stage = first[n] ? 0 : count + 1;
        else if (*stage != SF_NONE)
            *stage += 1;
    }
    return SF_OK;
}

/* Of the stages of all rounds, those of the last: they have the room of all stages of their group, whose weights are the same. */
static void take_last_round(sf_stage_request *cut, uint32_t rounds, sf_arena *arena)
{
    uint32_t groups = cut->count, last = (rounds - 1) * groups;
    double *room = cut->room ? SF_ARRAY(arena, groups, double) : NULL;
    for (uint32_t s = 0; s < rounds * groups && room; s++)
        room[s % groups] += cut->room[s];
    cut->room = room;
    cut->speed = cut->speed ? cut->speed + last : NULL;
    cut->in_flight = cut->in_flight ? cut->in_flight + last : NULL;
}

/* Forward passes through the same layers, as many as a pipeline rank has stages, alike. */
static sf_status cut_rounds(const asking *a, uint32_t rounds, uint32_t count, sf_diag *diag,
                            uint32_t **forward)
{
    const double *time = find_times(a);
    sf_stage_request cut = request_of(a, count / rounds, find_own_times(a, time));
    take_last_round(&cut, rounds, a->arena);
    return sf_cut_rounds(a->graph, rounds, &cut, time, a->arena, diag, forward);
}

/* The row of the schedule that the specification names; NULL: it names none, or none that there is. */
static const sf_schedule_info *find_named(const sf_spec *spec)
{
    return spec->schedule && !spec->table ? sf_schedule_find_info(spec->schedule) : NULL;
}

/* `kind` NULL: a table. */
static sf_status cut_stages(const asking *a, const sf_schedule_kind *kind, uint32_t *count,
                            uint32_t **forward)
{
    const sf_stages_spec *stages = &a->spec->stages;
    *count = stages->count;
    if (stages->scopes)
        return sf_cut_by_scopes(a->graph, stages->count - 1, stages->scopes + 1, a->arena, a->diag,
                                forward);
    const sf_schedule_info *info = kind ? sf_schedule_get(kind->name) : NULL;
    if (info && info->recycles == SF_RECYCLES_ALWAYS)
        return cut_rounds(a, kind->chunks, *count, a->diag, forward);
    if (info && info->recycles == SF_RECYCLES_IF_IT_CAN && kind->chunks > 1 &&
        cut_rounds(a, kind->chunks, *count, NULL, forward) == SF_OK)
        return SF_OK;
    if (!info || info->shared == 0)
        return cut_evenly(a, *count, NULL, NULL, forward);
    SF_TRY(cut_with_ends(a, *count, forward));
    *count += info->shared;
    return SF_OK;
}

/* Stages on sets of groups: "@0-1,layer_2@2", or "@0-1,@2" */

static sf_status fail_placed(const asking *a, const char *why)
{
    return sf_fail(a->diag, SF_EUSAGE, SF_NOWHERE, "stages with pipeline ranks: %s", why);
}

static sf_status cut_placed(const asking *a, uint32_t **forward)
{
    const sf_spec *spec = a->spec;
    const sf_stages_spec *stages = &spec->stages;
    if (spec->table)
        return fail_placed(a, "a table says itself which pipeline ranks run what");
    const sf_schedule_info *info = find_named(spec);
    bool has_count = info && strcmp(spec->schedule, info->name) != 0; /* the stages are given */
    if (spec->schedule && (!info || !info->goes_by_times || has_count))
        return fail_placed(a, "their order is found: leave out the schedule, or take search");
    if (stages->scopes)
        return sf_cut_by_scopes(a->graph, stages->count - 1, stages->scopes + 1, a->arena, a->diag,
                                forward);
    double *speed = SF_ARRAY(a->arena, stages->count, double);
    for (uint32_t s = 0; s < stages->count; s++)
        speed[s] = __builtin_popcountll(stages->groups[s]);
    return cut_evenly(a, stages->count, speed, NULL, forward);
}

static sf_status make_placed(const asking *a, sf_pipeline *out)
{
    const sf_stages_spec *stages = &a->spec->stages;
    uint32_t *forward;
    SF_TRY(cut_placed(a, &forward));
    sf_schedule_choice choice = {
        .groups = stages->groups, .time = a->costs->time, .recomputed = a->costs->recomputed};
    return sf_pipeline_make(a->graph, stages->count, forward, stages->ngroups,
                            sf_pipeline_micro_batches(a->spec), &choice, a->arena, a->diag, out);
}

/* How many groups of devices the schedule wants for so many stages. */
static sf_status find_groups(const char *name, sf_schedule_kind kind, uint32_t nstages,
                             sf_diag *diag, uint32_t *out)
{
    uint32_t shared = sf_schedule_get(kind.name)->shared;
    nstages -= nstages > shared ? shared : 0;
    for (uint32_t groups = 2; groups <= nstages && groups <= SF_MOST_GROUPS; groups++)
        if (sf_schedule_stages(kind, groups) == nstages) {
            *out = groups;
            return SF_OK;
        }
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                   "schedule %s does not run %u stages: 2 pipeline ranks have %u", name, nstages,
                   sf_schedule_stages(kind, 2));
}

static sf_status by_name(const asking *a, sf_pipeline *out)
{
    uint32_t count = a->spec->stages.count, groups, *forward;
    sf_schedule_kind kind;
    sf_schedule_choice choice = {.name = a->spec->schedule ? a->spec->schedule : "1f1b",
                                 .time = a->costs->time,
                                 .recomputed = a->costs->recomputed};
    SF_TRY(sf_schedule_parse(choice.name, &kind, a->diag));
    if (!a->spec->stages.scopes)
        SF_TRY(find_groups(choice.name, kind, count, a->diag, &groups));
    SF_TRY(cut_stages(a, &kind, &count, &forward));
    SF_TRY(find_groups(choice.name, kind, count, a->diag, &groups));
    return sf_pipeline_make(a->graph, count, forward, groups, sf_pipeline_micro_batches(a->spec),
                            &choice, a->arena, a->diag, out);
}

sf_status sf_pipeline_by(const sf_graph *graph, const sf_spec *spec, const sf_pipeline_costs *costs,
                         sf_arena *arena, sf_diag *diag, sf_pipeline *out)
{
    asking a = {graph, spec, costs, arena, diag};
    uint32_t count, *forward;
    if (spec->stages.groups)
        return make_placed(&a, out);
    if (!spec->table)
        return by_name(&a, out);
    sf_schedule_choice choice = {.table = spec->table};
    SF_TRY(cut_stages(&a, NULL, &count, &forward));
    return sf_pipeline_make(graph, count, forward, spec->table->pipe.ngroups,
                            sf_pipeline_micro_batches(spec), &choice, arena, diag, out);
}
