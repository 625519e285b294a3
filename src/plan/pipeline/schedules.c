#include "plan/pipeline/schedules.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/nearest.h"
#include "base/number.h"
#include "plan/pipeline/schedule_builder.h"

/* Names */

typedef uint64_t host_function(const sf_scheduling *s, uint32_t stage, uint32_t microbatch);

typedef struct named {
    sf_schedule_info info;
    host_function *hosts;
    sf_status (*order)(sf_scheduling *s);
} named;

static const named table[] = {
    [SF_SCHEDULE_GPIPE] = {{.name = "gpipe", .chunks = 1, .least = 1},
                           sf_host_round,
                           sf_order_gpipe},
    [SF_SCHEDULE_1F1B] = {{.name = "1f1b", .chunks = 1, .least = 1, .falls_to_one = true},
                          sf_host_round,
                          sf_order_interleaved},
    [SF_SCHEDULE_INTERLEAVED] =
        {{.name = "interleaved", .count = "CHUNKS", .chunks = 2, .least = 2, .whole_rounds = true},
         sf_host_round,
         sf_order_interleaved},
    [SF_SCHEDULE_ZB_H1] =
        {{.name = "zb-h1", .chunks = 1, .least = 1, .worth_turns = 2, .splits_weights = true},
         sf_host_round,
         sf_order_zb_h1},
    [SF_SCHEDULE_ZB_V] = {{.name = "zb-v", .chunks = 2, .least = 2, .splits_weights = true},
                          sf_host_down_and_up,
                          sf_order_zb_v},
    [SF_SCHEDULE_CHIMERA] = {{.name = "chimera", .chunks = 1, .least = 1, .least_turns = 2},
                             sf_host_both_ways,
                             sf_order_found},
    [SF_SCHEDULE_DUALPIPE] =
        {{.name = "dualpipe", .chunks = 1, .least = 1, .least_turns = 2, .splits_weights = true},
         sf_host_both_ways,
         sf_order_found},
    [SF_SCHEDULE_3F1B] = {{.name = "3f1b",
                           .count = "PASSES",
                           .chunks = 3,
                           .least = 1,
                           .recycles = SF_RECYCLES_ALWAYS},
                          sf_host_round,
                          sf_order_recycled},
    [SF_SCHEDULE_INTERLACED] =
        {{.name = "interlaced", .chunks = 1, .least = 1, .shared = 2, .goes_by_times = true},
         sf_host_shared,
         sf_order_found},
    [SF_SCHEDULE_SEARCH] = {{.name = "search",
                             .count = "CHUNKS",
                             .chunks = 1,
                             .least = 1,
                             .goes_by_times = true,
                             .recycles = SF_RECYCLES_IF_IT_CAN},
                            sf_host_round,
                            sf_order_found},
};
enum { NAMES = sizeof table / sizeof *table, MOST_CHUNKS = 1024 };

static sf_status unknown(const char *text, sf_diag *diag)
{
    sf_nearest nearest = {.text = sf_str_of(text)};
    sf_buf names = {0};
    for (uint32_t i = 0; i < NAMES; i++) {
        const sf_schedule_info *it = &table[i].info;
        sf_nearest_try(&nearest, it->name);
        sf_buf_printf(&names, "%s%s", i ? ", " : "", it->name);
        if (it->count)
            sf_buf_printf(&names, "[:%s]", it->count);
    }
    sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there is no schedule \"%.100s\"; there are %s", text,
            names.text);
    sf_buf_free(&names);
    return nearest.best ? sf_hint(diag, "did you mean %s?", nearest.best) : SF_EUSAGE;
}

sf_status sf_schedule_parse(const char *text, sf_schedule_kind *out, sf_diag *diag)
{
    sf_str all = sf_str_of(text);
    for (uint32_t i = 0; i < NAMES; i++) {
        const sf_schedule_info *it = &table[i].info;
        if (!sf_str_starts(all, it->name))
            continue;
        sf_str rest = {all.at + strlen(it->name), all.length - strlen(it->name)};
        int64_t count = it->chunks;
        if (rest.length > 0) {
            if (rest.at[0] != ':')
                continue;
            rest = (sf_str){rest.at + 1, rest.length - 1};
            if (!it->count)
                return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the schedule %s takes no number",
                               it->name);
            if (!sf_number_int(rest, &count) || count < it->least || count > MOST_CHUNKS)
                return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                               "the number in \"%.100s\" must be between %" PRIu32 " and %d", text,
                               it->least, MOST_CHUNKS);
        }
        *out = (sf_schedule_kind){(sf_schedule_name)i, (uint32_t)count};
        return SF_OK;
    }
    return unknown(text, diag);
}

const sf_schedule_info *sf_schedule_get(sf_schedule_name name)
{
    return &table[name].info;
}

const sf_schedule_info *sf_schedule_find_info(const char *text)
{
    sf_schedule_kind kind;
    return sf_schedule_parse(text, &kind, NULL) == SF_OK ? sf_schedule_get(kind.name) : NULL;
}

uint32_t sf_schedule_stages(sf_schedule_kind kind, uint32_t ngroups)
{
    return kind.chunks * ngroups;
}

/* Making */

static uint32_t count_shared(const sf_pipe *pipe, const bool *shared)
{
    uint32_t count = 0;
    for (uint32_t s = 0; shared && s < pipe->nstages; s++)
        count += shared[s];
    return count;
}

static sf_status check_turns(sf_schedule_kind kind, const sf_pipe *pipe, sf_diag *diag)
{
    uint32_t p = pipe->ngroups, m = pipe->nmicrobatches;
    const sf_schedule_info *it = sf_schedule_get(kind.name);
    if (it->whole_rounds && m % p != 0) {
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                "%s passes micro-batches on in rounds of one per pipeline rank: %" PRIu32
                " micro-batches are not a multiple of %" PRIu32 " pipeline ranks",
                it->name, m, p);
        return sf_hint(diag, "take %" PRIu32 " micro-batches, or the schedule 1f1b",
                       (m / p + 1) * p);
    }
    if (m < it->least_turns)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "%s goes both ways, so it needs at least two micro-batches", it->name);
    return SF_OK;
}

static sf_status check_numbers(sf_schedule_kind kind, const sf_pipe *pipe, const bool *shared,
                               sf_diag *diag)
{
    const sf_schedule_info *it = sf_schedule_get(kind.name);
    const char *name = it->name;
    uint32_t p = pipe->ngroups, m = pipe->nmicrobatches, nshared = count_shared(pipe, shared);
    if (p == 0 || p > SF_MOST_GROUPS || m == 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "a pipeline has 1 to %d pipeline ranks and at least one micro-batch",
                       SF_MOST_GROUPS);
    if (nshared > 0 && it->shared == 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "%s has no stages that all pipeline ranks share; %s has", name,
                       sf_schedule_get(SF_SCHEDULE_INTERLACED)->name);
    uint32_t wanted = sf_schedule_stages(kind, p);
    if (pipe->nstages - nshared != wanted)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "%s on %" PRIu32 " pipeline ranks has %" PRIu32 " stages%s, not %" PRIu32,
                       name, p, wanted, nshared ? " besides those that all share" : "",
                       pipe->nstages - nshared);
    if ((uint64_t)pipe->nstages * m > SF_MOST_TASKS / SF_PASSES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "%" PRIu32 " stages in %" PRIu32 " micro-batches are more than %d tasks",
                       pipe->nstages, m, SF_MOST_TASKS);
    for (uint32_t e = 0; e < pipe->nedges; e++)
        if (pipe->edges[e].from >= pipe->edges[e].to || pipe->edges[e].to >= pipe->nstages)
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                           "stages must be numbered so that edges go to higher ones: %" PRIu32
                           " to %" PRIu32 " does not",
                           pipe->edges[e].from, pipe->edges[e].to);
    return check_turns(kind, pipe, diag);
}

static void set_hosts(sf_scheduling *s, host_function *host)
{
    uint64_t *hosts = SF_ARRAY(s->arena, (size_t)s->pipe.nstages * s->pipe.nmicrobatches, uint64_t);
    for (uint32_t stage = 0; stage < s->pipe.nstages; stage++)
        for (uint32_t i = 0; i < s->pipe.nmicrobatches; i++)
            hosts[(size_t)stage * s->pipe.nmicrobatches + i] = host(s, stage, i);
    s->pipe.hosts = hosts;
}

/* Room for all tasks of each group. */
static void set_lists(sf_scheduling *s)
{
    uint32_t counts[SF_MOST_GROUPS] = {0};
    for (size_t i = 0; i < (size_t)s->pipe.nstages * s->pipe.nmicrobatches; i++)
        for (uint64_t rest = s->pipe.hosts[i]; rest; rest &= rest - 1)
            counts[__builtin_ctzll(rest)] += SF_PASSES;
    s->out->ntasks = SF_ARRAY(s->arena, s->pipe.ngroups, uint32_t);
    s->out->tasks = SF_ARRAY(s->arena, s->pipe.ngroups, sf_stage_task *);
    for (uint32_t g = 0; g < s->pipe.ngroups; g++)
        s->out->tasks[g] = SF_ARRAY(s->arena, counts[g], sf_stage_task);
}

static const bool *share_ends(const sf_pipe *pipe, sf_arena *arena)
{
    bool *shared = SF_ARRAY(arena, pipe->nstages + 1, bool);
    if (pipe->nstages > 0)
        shared[0] = shared[pipe->nstages - 1] = true;
    return shared;
}

sf_status sf_schedule_make(sf_schedule_kind kind, const sf_pipe *pipe, const bool *shared,
                           sf_arena *arena, sf_schedule *out, sf_diag *diag)
{
    const named *it = &table[kind.name];
    if (it->info.shared > 0 && !shared)
        shared = share_ends(pipe, arena);
    SF_TRY(check_numbers(kind, pipe, shared, diag));
    sf_scheduling s = {*pipe, shared, kind.chunks, out, arena, diag};
    s.pipe.splits_weights |= it->info.splits_weights;
    if (it->info.shared == 0)
        s.shared = NULL;
    set_hosts(&s, it->hosts);
    set_lists(&s);
    SF_TRY(it->order(&s));
    out->pipe = s.pipe;
    return sf_schedule_check(out, diag);
}
