#include "plan/pipe/pipeline_by.h"

#include <stdlib.h>
#include <string.h>

#include "plan/pipe/rounds.h"
#include "plan/pipe/schedules.h"
#include "plan/pipe/stage_costs.h"

static bool is_number(const char *text, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    *out = value <= SF_MOST_GROUPS ? (uint32_t)value : 0;
    return *text >= '0' && *text <= '9' && *end == '\0';
}

/* `kind` NULL: a table. */
static sf_status cut_stages(const sf_graph *graph, const sf_pipeline_wish *wish,
                            const sf_schedule_kind *kind, sf_arena *arena, sf_diag *diag,
                            uint32_t *count, uint32_t **forward)
{
    if (!is_number(wish->stages, count))
        return sf_cut_by_scopes(graph, wish->stages, arena, diag, forward, count);
    if (*count == 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a pipeline has 1 to %d stages",
                       SF_MOST_GROUPS);
    const double *time = wish->time ? wish->time : sf_times_by_ops(graph, arena);
    if (kind && kind->name == SF_SCHEDULE_3F1B)
        return sf_cut_rounds(graph, kind->chunks, *count / kind->chunks, time, arena, diag,
                             forward);
    sf_stage_wish cut = wish->loads ? *wish->loads : (sf_stage_wish){0};
    cut.count = *count;
    cut.time = sf_forward_times(graph, time, arena);
    cut.turns = wish->turns;
    sf_stage_cut found;
    SF_TRY(sf_cut_step(graph, &cut, arena, diag, &found));
    *forward = found.forward;
    return SF_OK;
}

/* How many groups of devices the schedule wants for so many stages. */
static sf_status find_groups(const char *name, sf_schedule_kind kind, uint32_t nstages,
                             sf_diag *diag, uint32_t *out)
{
    for (uint32_t groups = 1; groups <= nstages && groups <= SF_MOST_GROUPS; groups++)
        if (sf_schedule_stages(kind, groups) == nstages) {
            *out = groups;
            return SF_OK;
        }
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                   "schedule %s does not run %u stages: 2 groups of devices have %u", name, nstages,
                   sf_schedule_stages(kind, 2));
}

static sf_status by_name(const sf_graph *graph, const sf_pipeline_wish *wish, sf_arena *arena,
                         sf_diag *diag, sf_pipeline *out)
{
    uint32_t count, groups, *forward;
    sf_schedule_kind kind;
    sf_schedule_choice choice = {.name = wish->schedule ? wish->schedule : "1f1b"};
    SF_TRY(sf_schedule_parse(choice.name, &kind, diag));
    if (is_number(wish->stages, &count) && count > 0)
        SF_TRY(find_groups(choice.name, kind, count, diag, &groups));
    SF_TRY(cut_stages(graph, wish, &kind, arena, diag, &count, &forward));
    SF_TRY(find_groups(choice.name, kind, count, diag, &groups));
    return sf_pipeline_make(graph, count, forward, groups, wish->turns ? wish->turns : 1, &choice,
                            arena, diag, out);
}

sf_status sf_pipeline_by(const sf_graph *graph, const sf_pipeline_wish *wish, sf_arena *arena,
                         sf_diag *diag, sf_pipeline *out)
{
    uint32_t count, *forward;
    if (!wish->table)
        return by_name(graph, wish, arena, diag, out);
    sf_schedule_choice choice = {.table = wish->table};
    SF_TRY(cut_stages(graph, wish, NULL, arena, diag, &count, &forward));
    return sf_pipeline_make(graph, count, forward, wish->table->pipe.ngroups,
                            wish->turns ? wish->turns : 1, &choice, arena, diag, out);
}
