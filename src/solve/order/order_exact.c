#include "solve/order/order_exact.h"

#include <string.h>

#include "base/diag.h"
#include "solve/order/list_schedule.h"

/* Jobs are put at the end of their queues, in order of their start: this enumerates every schedule
 * in which each job starts as soon as its queues allow. Three rules cut the tree:
 *
 *   bound       the remaining work of a machine, and the longest chain after the next job
 *   earlier     a job is not put to start at a time by which another could have run, if that one
 *   frees at least as much memory as it takes: it could be moved before, and no job would be
 *   later
 *   seen        of two ways to have put the same jobs, one that is nowhere later is enough. Memory in use is the same. */

enum { SEEN_BITS = 16, SEEN = 1 << SEEN_BITS };

typedef struct seen {
    uint64_t set[2];
    const int64_t *when; /* nwhen of them; NULL: this place is free */
} seen;

typedef struct search {
    const sf_jobs *jobs;
    const int64_t *tails;
    sf_exact *out;
    uint64_t most_nodes;
    bool cut; /* the limit on nodes was reached */

    uint64_t set[2];
    uint32_t missing[SF_MOST_EXACT];
    int64_t end[SF_MOST_EXACT]; /* of those that were put */
    int64_t free_at[SF_MOST_MACHINES], used[SF_MOST_MACHINES], left[SF_MOST_MACHINES];
    uint32_t order[SF_MOST_EXACT], norder;
    uint32_t best[SF_MOST_EXACT];

    seen *table;
    int64_t *when; /* room for one */
    uint32_t nwhen;
    sf_arena *arena;
} search;

static bool is_put(const search *s, uint32_t job)
{
    return s->set[job / 64] >> job % 64 & 1;
}

static int64_t start_of(const search *s, uint32_t job)
{
    int64_t start = 0;
    for (uint32_t i = s->jobs->first_in[job]; i < s->jobs->first_in[job + 1]; i++) {
        const sf_wait *wait = &s->jobs->waits[s->jobs->in[i]];
        int64_t from = s->end[wait->before] + wait->delay;
        start = from > start ? from : start;
    }
    for (uint64_t rest = s->jobs->jobs[job].machines; rest; rest &= rest - 1) {
        int64_t at = s->free_at[__builtin_ctzll(rest)];
        start = at > start ? at : start;
    }
    return start;
}

static bool fits(const search *s, uint32_t job)
{
    const sf_job *it = &s->jobs->jobs[job];
    int64_t most = it->at_end > 0 ? it->at_start + it->at_end : it->at_start;
    for (uint64_t rest = it->machines; rest && s->jobs->limits; rest &= rest - 1) {
        int m = __builtin_ctzll(rest);
        if (s->used[m] + most > s->jobs->limits[m])
            return false;
    }
    return true;
}

static int64_t bound(const search *s, uint32_t machine)
{
    int64_t least_tail = INT64_MAX, least_start = INT64_MAX;
    for (uint32_t j = 0; j < s->jobs->njobs; j++)
        if (!is_put(s, j) && s->jobs->jobs[j].machines >> machine & 1) {
            least_tail = s->tails[j] < least_tail ? s->tails[j] : least_tail;
            if (s->missing[j] > 0) {
                least_start = s->free_at[machine];
            } else {
                int64_t start = start_of(s, j);
                least_start = start < least_start ? start : least_start;
            }
        }
    return least_tail == INT64_MAX ? 0 : least_start + s->left[machine] + least_tail;
}

static bool is_hopeless(const search *s)
{
    for (uint32_t m = 0; m < s->jobs->nmachines; m++)
        if (bound(s, m) >= s->out->makespan)
            return true;
    for (uint32_t j = 0; j < s->jobs->njobs; j++)
        if (!is_put(s, j) && s->missing[j] == 0 &&
            start_of(s, j) + s->jobs->jobs[j].time + s->tails[j] >= s->out->makespan)
            return true;
    return false;
}

/* When machines are free, when jobs that others wait for have ended, and from when on jobs may be put. */
static void note_when(search *s, int64_t last)
{
    uint32_t n = 0;
    s->when[n++] = last;
    for (uint32_t m = 0; m < s->jobs->nmachines; m++)
        s->when[n++] = s->free_at[m];
    for (uint32_t j = 0; j < s->jobs->njobs; j++) {
        bool awaited = false;
        for (uint32_t o = s->jobs->first_out[j]; o < s->jobs->first_out[j + 1] && is_put(s, j); o++)
            awaited |= !is_put(s, s->jobs->waits[s->jobs->out[o]].after);
        s->when[n++] = awaited ? s->end[j] : 0;
    }
}

static bool is_nowhere_later(const search *s, const int64_t *a, const int64_t *b)
{
    for (uint32_t i = 0; i < s->nwhen; i++)
        if (a[i] > b[i])
            return false;
    return true;
}

/* The same jobs were put before, nowhere later. A table of limited size drops only entries that
 * find it full. */
static bool was_seen(search *s, int64_t last)
{
    note_when(s, last);
    uint64_t hash =
        (s->set[0] * UINT64_C(0x9e3779b97f4a7c15)) ^ (s->set[1] * UINT64_C(0xc2b2ae3d27d4eb4f));
    hash ^= hash >> 32;
    for (uint32_t tries = 0; tries < 8; tries++) {
        seen *it = &s->table[(hash + tries) % SEEN];
        if (!it->when) {
            *it = (seen){{s->set[0], s->set[1]},
                         sf_arena_copy(s->arena, s->when, s->nwhen * sizeof *s->when)};
            return false;
        }
        if (it->set[0] != s->set[0] || it->set[1] != s->set[1])
            continue;
        if (is_nowhere_later(s, it->when, s->when))
            return true;
    }
    return false;
}

static void put(search *s, uint32_t job, int sign)
{
    const sf_job *it = &s->jobs->jobs[job];
    s->set[job / 64] ^= UINT64_C(1) << job % 64;
    for (uint32_t o = s->jobs->first_out[job]; o < s->jobs->first_out[job + 1]; o++)
        s->missing[s->jobs->waits[s->jobs->out[o]].after] -= (uint32_t)sign;
    for (uint64_t rest = it->machines; rest; rest &= rest - 1) {
        int m = __builtin_ctzll(rest);
        s->used[m] += sign * (it->at_start + it->at_end);
        s->left[m] -= sign * it->time;
    }
}

static void keep(search *s)
{
    int64_t makespan = 0;
    for (uint32_t j = 0; j < s->jobs->njobs; j++)
        makespan = s->end[j] > makespan ? s->end[j] : makespan;
    if (makespan >= s->out->makespan)
        return;
    s->out->found = true;
    s->out->makespan = makespan;
    memcpy(s->best, s->order, s->norder * sizeof *s->best);
}

typedef struct choice {
    uint32_t job;
    int64_t start;
} choice;

/* Those that may be put next, from the longest tail to the shortest, in `out`. */
static uint32_t list_choices(const search *s, int64_t last, choice *out)
{
    int64_t before = INT64_MAX;
    uint32_t n = 0;
    for (uint32_t j = 0; j < s->jobs->njobs; j++) {
        if (is_put(s, j) || s->missing[j] > 0 || !fits(s, j))
            continue;
        int64_t start = start_of(s, j);
        if (start < last)
            continue;
        const sf_job *it = &s->jobs->jobs[j];
        if (it->time > 0 && (!s->jobs->limits || it->at_start + it->at_end <= 0))
            before = start + it->time < before ? start + it->time : before;
        uint32_t at = n++;
        for (; at > 0 && s->tails[out[at - 1].job] < s->tails[j]; at--)
            out[at] = out[at - 1];
        out[at] = (choice){j, start};
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (out[i].start < before)
            out[kept++] = out[i];
    return kept;
}

static void visit(search *s, int64_t last)
{
    if (s->norder == s->jobs->njobs) {
        keep(s);
        return;
    }
    if (s->out->nodes >= s->most_nodes) {
        s->cut = true;
        return;
    }
    s->out->nodes++;
    if (is_hopeless(s) || was_seen(s, last))
        return;
    choice choices[SF_MOST_EXACT];
    uint32_t n = list_choices(s, last, choices);
    for (uint32_t i = 0; i < n && !s->cut; i++) {
        uint32_t job = choices[i].job;
        uint64_t machines = s->jobs->jobs[job].machines;
        int64_t were_free[SF_MOST_MACHINES];
        memcpy(were_free, s->free_at, sizeof were_free);
        s->end[job] = choices[i].start + s->jobs->jobs[job].time;
        for (uint64_t rest = machines; rest; rest &= rest - 1)
            s->free_at[__builtin_ctzll(rest)] = s->end[job];
        s->order[s->norder++] = job;
        put(s, job, 1);
        visit(s, choices[i].start);
        put(s, job, -1);
        s->norder--;
        memcpy(s->free_at, were_free, sizeof were_free);
    }
}

void sf_exact_schedule(const sf_jobs *jobs, int64_t below, uint64_t nodes, sf_arena *arena,
                       sf_exact *out)
{
    SF_ASSERT(jobs->njobs <= SF_MOST_EXACT);
    *out = (sf_exact){.makespan = below};
    search *s = SF_NEW(arena, search);
    s->jobs = jobs;
    s->tails = sf_jobs_tails(jobs, arena);
    SF_ASSERT(s->tails);
    s->out = out;
    s->most_nodes = nodes;
    s->arena = arena;
    s->nwhen = 1 + jobs->nmachines + jobs->njobs;
    s->table = SF_ARRAY(arena, SEEN, seen);
    s->when = SF_ARRAY(arena, s->nwhen, int64_t);
    for (uint32_t j = 0; j < jobs->njobs; j++) {
        s->missing[j] = jobs->first_in[j + 1] - jobs->first_in[j];
        for (uint64_t rest = jobs->jobs[j].machines; rest; rest &= rest - 1)
            s->left[__builtin_ctzll(rest)] += jobs->jobs[j].time;
    }
    visit(s, 0);
    out->proven = !s->cut;
    out->queues = sf_queues_new(jobs, arena);
    for (uint32_t i = 0; i < jobs->njobs && out->found; i++)
        sf_queues_add(jobs, &out->queues, s->best[i]);
}
