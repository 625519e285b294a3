#include "plan/schedules.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/nearest.h"
#include "base/number.h"

/* What a schedule is being made with. */
typedef struct making {
    sf_pipe pipe;
    sf_schedule *out;
    uint32_t chunks;
} making;

/* The task, if there is one, at the end of the list of a group. */
static void add(making *m, uint32_t group, uint32_t stage, uint32_t turn, sf_pass pass)
{
    if (sf_pipe_has(&m->pipe, stage, pass))
        m->out->tasks[group][m->out->ntasks[group]++] = (sf_task){stage, turn, pass};
}

static void add_backward(making *m, uint32_t group, uint32_t stage, uint32_t turn)
{
    add(m, group, stage, turn, SF_PASS_BACKWARD);
    add(m, group, stage, turn, SF_PASS_WEIGHTS);
}

/* Lists */

static void make_gpipe(making *m)
{
    for (uint32_t g = 0; g < m->pipe.ngroups; g++) {
        for (uint32_t i = 0; i < m->pipe.nturns; i++)
            add(m, g, g, i, SF_PASS_FORWARD);
        for (uint32_t i = 0; i < m->pipe.nturns; i++)
            add_backward(m, g, g, i);
    }
}

/* The kth of the passes of a group that has several stages: p turns of one chunk, then of the next; backward passes begin
 * with the last chunk (Narayanan et al., 2021, section 2.2). */
static void add_nth(making *m, uint32_t group, uint32_t k, bool backward)
{
    uint32_t p = m->pipe.ngroups, v = m->chunks;
    uint32_t chunk = k % (p * v) / p, turn = k / (p * v) * p + k % p;
    if (backward)
        add_backward(m, group, (v - 1 - chunk) * p + group, turn);
    else
        add(m, group, chunk * p + group, turn, SF_PASS_FORWARD);
}

/* With one chunk, 1f1b. */
static void make_interleaved(making *m)
{
    uint32_t p = m->pipe.ngroups, v = m->chunks, total = m->pipe.nturns * v;
    for (uint32_t g = 0; g < p; g++) {
        uint32_t ahead = v == 1 ? p - 1 - g : 2 * (p - 1 - g) + (v - 1) * p;
        ahead = ahead < total ? ahead : total;
        for (uint32_t k = 0; k < ahead; k++)
            add_nth(m, g, k, false);
        for (uint32_t k = ahead; k < total; k++) {
            add_nth(m, g, k, false);
            add_nth(m, g, k - ahead, true);
        }
        for (uint32_t k = total - ahead; k < total; k++)
            add_nth(m, g, k, true);
    }
}

/* Hosts */

static uint64_t host_in_turn(const making *m, uint32_t stage, uint32_t turn)
{
    (void)turn;
    return UINT64_C(1) << stage % m->pipe.ngroups;
}

/* Names */

typedef struct named {
    const char *name;
    bool counted; /* a number stands behind it */
    uint32_t usual, least;
    bool splits_weights;
    void (*make)(making *m);
    uint64_t (*hosts)(const making *m, uint32_t stage, uint32_t turn);
} named;

static const named table[] = {
    [SF_SCHEDULE_GPIPE] = {"gpipe", false, 1, 1, false, make_gpipe, host_in_turn},
    [SF_SCHEDULE_1F1B] = {"1f1b", false, 1, 1, false, make_interleaved, host_in_turn},
    [SF_SCHEDULE_INTERLEAVED] = {"interleaved", true, 2, 2, false, make_interleaved, host_in_turn},
};
enum { NAMES = sizeof table / sizeof *table, MOST_CHUNKS = 1024 };

const char *sf_schedule_names(void)
{
    return "gpipe, 1f1b, interleaved:2 (stages a group)";
}

static sf_status unknown(const char *text, sf_diag *diag)
{
    sf_nearest nearest = {.text = sf_str_of(text)};
    for (uint32_t i = 0; i < NAMES; i++)
        sf_nearest_try(&nearest, table[i].name);
    sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there is no schedule \"%.100s\"; there are %s", text,
            sf_schedule_names());
    return nearest.best ? sf_hint(diag, "did you mean %s?", nearest.best) : SF_EUSAGE;
}

sf_status sf_schedule_parse(const char *text, sf_schedule_kind *out, sf_diag *diag)
{
    sf_str all = sf_str_of(text);
    for (uint32_t i = 0; i < NAMES; i++) {
        const named *it = &table[i];
        if (!sf_str_starts(all, it->name))
            continue;
        sf_str rest = {all.at + strlen(it->name), all.length - strlen(it->name)};
        int64_t count = it->usual;
        if (rest.length > 0) {
            if (rest.at[0] != ':')
                continue;
            rest = (sf_str){rest.at + 1, rest.length - 1};
            if (!it->counted)
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

void sf_schedule_kind_text(sf_schedule_kind kind, char out[32])
{
    const named *it = &table[kind.name];
    if (it->counted)
        snprintf(out, 32, "%s:%" PRIu32, it->name, kind.chunks);
    else
        snprintf(out, 32, "%s", it->name);
}

uint32_t sf_schedule_stages(sf_schedule_kind kind, uint32_t ngroups)
{
    return kind.chunks * ngroups;
}

bool sf_schedule_splits_weights(sf_schedule_kind kind)
{
    return table[kind.name].splits_weights;
}

/* Making */

static sf_status check_numbers(sf_schedule_kind kind, const sf_pipe *pipe, sf_diag *diag)
{
    const char *name = table[kind.name].name;
    uint32_t p = pipe->ngroups, m = pipe->nturns;
    if (p == 0 || p > SF_MOST_GROUPS || m == 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "a pipeline has 1 to %d groups of devices and at least one turn",
                       SF_MOST_GROUPS);
    uint32_t wanted = sf_schedule_stages(kind, p);
    if (pipe->nstages != wanted)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "%s on %" PRIu32 " groups has %" PRIu32 " stages, not %" PRIu32, name, p,
                       wanted, pipe->nstages);
    if ((uint64_t)pipe->nstages * m > SF_MOST_TASKS / SF_PASSES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "%" PRIu32 " stages in %" PRIu32 " turns are more than %d tasks",
                       pipe->nstages, m, SF_MOST_TASKS);
    if (kind.name == SF_SCHEDULE_INTERLEAVED && m % p != 0) {
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                "%s hands turns on in rounds of as many as there are groups: %" PRIu32
                " turns are no multiple of %" PRIu32 " groups",
                name, m, p);
        return sf_hint(diag, "take %" PRIu32 " turns, or the schedule 1f1b", (m / p + 1) * p);
    }
    return SF_OK;
}

static void set_hosts(making *m, const named *it, sf_arena *arena)
{
    uint64_t *hosts = SF_ARRAY(arena, (size_t)m->pipe.nstages * m->pipe.nturns, uint64_t);
    for (uint32_t s = 0; s < m->pipe.nstages; s++)
        for (uint32_t i = 0; i < m->pipe.nturns; i++)
            hosts[(size_t)s * m->pipe.nturns + i] = it->hosts(m, s, i);
    m->pipe.hosts = hosts;
}

/* Room for all tasks of each group. */
static void set_lists(making *m, sf_arena *arena)
{
    uint32_t counts[SF_MOST_GROUPS] = {0};
    for (size_t i = 0; i < (size_t)m->pipe.nstages * m->pipe.nturns; i++)
        for (uint64_t rest = m->pipe.hosts[i]; rest; rest &= rest - 1)
            counts[__builtin_ctzll(rest)] += SF_PASSES;
    m->out->ntasks = SF_ARRAY(arena, m->pipe.ngroups, uint32_t);
    m->out->tasks = SF_ARRAY(arena, m->pipe.ngroups, sf_task *);
    for (uint32_t g = 0; g < m->pipe.ngroups; g++)
        m->out->tasks[g] = SF_ARRAY(arena, counts[g], sf_task);
}

sf_status sf_schedule_make(sf_schedule_kind kind, const sf_pipe *pipe, const bool *shared,
                           sf_arena *arena, sf_schedule *out, sf_diag *diag)
{
    (void)shared;
    const named *it = &table[kind.name];
    SF_TRY(check_numbers(kind, pipe, diag));
    making m = {.pipe = *pipe, .out = out, .chunks = kind.chunks};
    m.pipe.splits_weights |= it->splits_weights;
    set_hosts(&m, it, arena);
    set_lists(&m, arena);
    it->make(&m);
    out->pipe = m.pipe;
    return sf_schedule_check(out, diag);
}
