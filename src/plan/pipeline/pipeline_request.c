#include "plan/pipeline/pipeline_request.h"

#include <stdlib.h>
#include <string.h>

#include "plan/pipeline/recycling.h"
#include "plan/pipeline/schedules.h"
#include "plan/pipeline/stage_costs.h"

/* Stages may take so much longer than they must, to send less. */
#define TOLERANCE 0.03

static bool is_number(const char *text, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    *out = value <= SF_MOST_GROUPS ? (uint32_t)value : 0;
    return *text >= '0' && *text <= '9' && *end == '\0';
}

static const double *find_times(const sf_graph *graph, const sf_pipeline_request *request,
                                sf_arena *arena)
{
    return request->time ? request->time : sf_times_by_ops(graph, arena);
}

/* By node of the forward pass, with its gradient, and a second time where it is computed again. */
static double *find_own_times(const sf_graph *graph, const sf_pipeline_request *request,
                              const double *time, sf_arena *arena)
{
    double *own = sf_forward_times(graph, time, arena);
    for (uint32_t n = 0; request->recomputed && n < graph->nnodes; n++)
        own[n] += request->recomputed[n] ? time[n] : 0;
    return own;
}

/* So many stages, by what nodes take: `own`. */
static sf_stage_request preference_of(const sf_pipeline_request *request, uint32_t count,
                                      const double *own)
{
    sf_stage_request cut = request->loads ? *request->loads : (sf_stage_request){0};
    cut.count = count;
    cut.time = own;
    cut.tolerance = cut.tolerance > 0 ? cut.tolerance : TOLERANCE;
    cut.microbatches = request->microbatches;
    return cut;
}

/* So many stages, of which each takes as long as its speed says; `beside` (by node, or NULL) takes no time. */
static sf_status cut_evenly(const sf_graph *graph, const sf_pipeline_request *request,
                            uint32_t count, const double *speed, const bool *beside,
                            sf_arena *arena, sf_diag *diag, uint32_t **forward)
{
    double *own = find_own_times(graph, request, find_times(graph, request, arena), arena);
    for (uint32_t n = 0; beside && n < graph->nnodes; n++)
        own[n] = beside[n] ? 0 : own[n];
    sf_stage_request cut = preference_of(request, count, own);
    cut.beside = beside;
    cut.speed = speed ? speed : cut.speed;
    sf_stage_cut found;
    SF_TRY(sf_cut_step(graph, &cut, arena, diag, &found));
    *forward = found.forward;
    return SF_OK;
}

/* The vocabulary in a stage before all others, and one behind them. */
static sf_status cut_interlaced(const sf_graph *graph, const sf_pipeline_request *request,
                                uint32_t count, sf_arena *arena, sf_diag *diag, uint32_t **forward)
{
    bool *first, *last, *ends = SF_ARRAY(arena, graph->nnodes, bool);
    SF_TRY(sf_find_vocabulary(graph, arena, diag, &first, &last));
    for (uint32_t n = 0; n < graph->nnodes; n++)
        ends[n] = first[n] || last[n];
    SF_TRY(cut_evenly(graph, request, count, NULL, ends, arena, diag, forward));
    for (uint32_t n = 0; n < graph->nnodes; n++) {
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

/* Forward passes through the same layers, as many as a group has stages, alike. */
static sf_status cut_rounds(const sf_graph *graph, const sf_pipeline_request *request,
                            uint32_t rounds, uint32_t count, sf_arena *arena, sf_diag *diag,
                            uint32_t **forward)
{
    const double *time = find_times(graph, request, arena);
    sf_stage_request cut =
        preference_of(request, count / rounds, find_own_times(graph, request, time, arena));
    take_last_round(&cut, rounds, arena);
    return sf_cut_rounds(graph, rounds, &cut, time, arena, diag, forward);
}

static bool is_interlaced(const sf_pipeline_request *request)
{
    return request->schedule && !request->table && sf_schedule_shares(request->schedule);
}

/* `kind` NULL: a table. */
static sf_status cut_stages(const sf_graph *graph, const sf_pipeline_request *request,
                            const sf_schedule_kind *kind, sf_arena *arena, sf_diag *diag,
                            uint32_t *count, uint32_t **forward)
{
    if (request->stages[strspn(request->stages, ",")] == 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "stages are a number, or the scopes that begin them, and \"%s\" is neither",
                       request->stages);
    if (!is_number(request->stages, count))
        return sf_cut_by_scopes(graph, request->stages, arena, diag, forward, count);
    if (*count == 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a pipeline has 1 to %d stages",
                       SF_MOST_GROUPS);
    if (kind && kind->name == SF_SCHEDULE_3F1B)
        return cut_rounds(graph, request, kind->chunks, *count, arena, diag, forward);
    if (kind && kind->name == SF_SCHEDULE_SEARCH && kind->chunks > 1 &&
        cut_rounds(graph, request, kind->chunks, *count, arena, NULL, forward) == SF_OK)
        return SF_OK;
    if (!is_interlaced(request))
        return cut_evenly(graph, request, *count, NULL, NULL, arena, diag, forward);
    SF_TRY(cut_interlaced(graph, request, *count, arena, diag, forward));
    *count += 2;
    return SF_OK;
}

/* Stages on sets of groups: "@0-1,layer_2@2", or "@0-1,@2" */

typedef struct placing {
    const char *text; /* of the wish */
    uint32_t count, ngroups;
    uint64_t *groups; /* by stage */
    sf_buf scopes;    /* with commas between */
    uint32_t nscopes;
} placing;

static sf_status fail_groups(const placing *p, const char *why, sf_diag *diag)
{
    sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "stages \"%.100s\": %s", p->text, why);
    return sf_hint(diag, "say where each stage is, as in @all,layer_0@0,layer_2@1,head@all, or, "
                         "with stages that are found, in @0-1,@2");
}

static bool take_group(const char **at, uint32_t *out)
{
    uint32_t value = 0;
    const char *first = *at;
    for (; **at >= '0' && **at <= '9' && value < SF_MOST_GROUPS; (*at)++)
        value = value * 10 + (uint32_t)(**at - '0');
    *out = value;
    return *at > first && value < SF_MOST_GROUPS;
}

/* "0-1", "0+2", "all". Of all, nothing is known until all have been read: UINT64_MAX. */
static bool read_groups(const char *text, const char *end, uint64_t *out)
{
    uint32_t first, last;
    *out = UINT64_MAX;
    if (end - text == 3 && memcmp(text, "all", 3) == 0)
        return true;
    for (*out = 0; text < end; text += *text == '+') {
        if (!take_group(&text, &first))
            return false;
        last = first;
        if (*text == '-' && (text++, !take_group(&text, &last) || last < first))
            return false;
        for (uint32_t g = first; g <= last; g++)
            *out |= UINT64_C(1) << g;
        if (text < end && *text != '+')
            return false;
    }
    return *out != 0 && text == end && end[-1] != '+';
}

static sf_status read_place(placing *p, const char *item, size_t length, sf_diag *diag)
{
    const char *at = item + length;
    uint64_t *groups = &p->groups[p->count];
    while (at > item && *at != '@')
        at--;
    if (length == 0 || *at != '@')
        return fail_groups(p, "some of its stages say no groups", diag);
    if (!read_groups(at + 1, item + length, groups))
        return fail_groups(p, "expected pipeline ranks after @: 0, 0-1, 0+2, or all", diag);
    if (p->count == 0 && at > item)
        return fail_groups(p, "the first stage begins with the step: it has groups, but no scope",
                           diag);
    if (at > item) {
        sf_buf_printf(&p->scopes, "%s%.*s", p->nscopes > 0 ? "," : "", (int)(at - item), item);
        p->nscopes++;
    }
    for (uint32_t g = 0; g < SF_MOST_GROUPS && *groups != UINT64_MAX; g++)
        if (*groups >> g & 1 && g >= p->ngroups)
            p->ngroups = g + 1;
    p->count++;
    return SF_OK;
}

static sf_status read_places(placing *p, sf_arena *arena, sf_diag *diag)
{
    p->groups = SF_ARRAY(arena, strlen(p->text) + 1, uint64_t);
    for (const char *at = p->text;; at++) {
        size_t length = strcspn(at, ",");
        SF_TRY(read_place(p, at, length, diag));
        at += length;
        if (*at == '\0')
            break;
    }
    if (p->ngroups == 0)
        return fail_groups(p, "no stage says how many groups there are", diag);
    if (p->nscopes > 0 && p->nscopes + 1 != p->count)
        return fail_groups(p, "either all stages but the first have a scope, or none", diag);
    for (uint32_t s = 0; s < p->count; s++)
        if (p->groups[s] == UINT64_MAX)
            p->groups[s] = sf_all_groups(p->ngroups);
    return SF_OK;
}

static sf_status cut_placed(const sf_graph *graph, const sf_pipeline_request *request, placing *p,
                            sf_arena *arena, sf_diag *diag, uint32_t **forward)
{
    uint32_t count;
    double *speed = SF_ARRAY(arena, p->count, double);
    if (request->table)
        return fail_groups(p, "a table says itself which groups run what", diag);
    if (request->schedule && !is_interlaced(request) && strcmp(request->schedule, "search") != 0)
        return fail_groups(p,
                           "of stages that say their groups the order is found: leave out the "
                           "schedule, or take search",
                           diag);
    if (p->nscopes > 0)
        return sf_cut_by_scopes(graph, p->scopes.text, arena, diag, forward, &count);
    for (uint32_t s = 0; s < p->count; s++)
        speed[s] = __builtin_popcountll(p->groups[s]);
    return cut_evenly(graph, request, p->count, speed, NULL, arena, diag, forward);
}

static sf_status make_placed(const sf_graph *graph, const sf_pipeline_request *request,
                             sf_arena *arena, sf_diag *diag, sf_pipeline *out)
{
    placing p = {.text = request->stages};
    uint32_t *forward = NULL;
    sf_status status = read_places(&p, arena, diag);
    if (status == SF_OK)
        status = cut_placed(graph, request, &p, arena, diag, &forward);
    sf_buf_free(&p.scopes);
    SF_TRY(status);
    sf_schedule_choice choice = {
        .groups = p.groups, .time = request->time, .recomputed = request->recomputed};
    return sf_pipeline_make(graph, p.count, forward, p.ngroups,
                            request->microbatches ? request->microbatches : 1, &choice, arena, diag,
                            out);
}

/* How many groups of devices the schedule wants for so many stages. */
static sf_status find_groups(const char *name, sf_schedule_kind kind, uint32_t nstages,
                             sf_diag *diag, uint32_t *out)
{
    if (kind.name == SF_SCHEDULE_INTERLACED && nstages > 2) /* two are on all groups */
        nstages -= 2;
    for (uint32_t groups = 1; groups <= nstages && groups <= SF_MOST_GROUPS; groups++)
        if (sf_schedule_stages(kind, groups) == nstages) {
            *out = groups;
            return SF_OK;
        }
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                   "schedule %s does not run %u stages: 2 groups of devices have %u", name, nstages,
                   sf_schedule_stages(kind, 2));
}

static sf_status by_name(const sf_graph *graph, const sf_pipeline_request *request, sf_arena *arena,
                         sf_diag *diag, sf_pipeline *out)
{
    uint32_t count, groups, *forward;
    sf_schedule_kind kind;
    sf_schedule_choice choice = {.name = request->schedule ? request->schedule : "1f1b",
                                 .time = request->time,
                                 .recomputed = request->recomputed};
    SF_TRY(sf_schedule_parse(choice.name, &kind, diag));
    if (is_number(request->stages, &count) && count > 0)
        SF_TRY(find_groups(choice.name, kind, count, diag, &groups));
    SF_TRY(cut_stages(graph, request, &kind, arena, diag, &count, &forward));
    SF_TRY(find_groups(choice.name, kind, count, diag, &groups));
    return sf_pipeline_make(graph, count, forward, groups,
                            request->microbatches ? request->microbatches : 1, &choice, arena, diag,
                            out);
}

sf_status sf_pipeline_by(const sf_graph *graph, const sf_pipeline_request *request, sf_arena *arena,
                         sf_diag *diag, sf_pipeline *out)
{
    uint32_t count, *forward;
    if (strchr(request->stages, '@'))
        return make_placed(graph, request, arena, diag, out);
    if (!request->table)
        return by_name(graph, request, arena, diag, out);
    sf_schedule_choice choice = {.table = request->table};
    SF_TRY(cut_stages(graph, request, NULL, arena, diag, &count, &forward));
    return sf_pipeline_make(graph, count, forward, request->table->pipe.ngroups,
                            request->microbatches ? request->microbatches : 1, &choice, arena, diag,
                            out);
}
