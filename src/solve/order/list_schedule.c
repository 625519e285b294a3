#include "solve/order/list_schedule.h"

#include <string.h>

int64_t *sf_jobs_tails(const sf_jobs *jobs, sf_arena *arena)
{
    int64_t *tails = SF_ARRAY(arena, jobs->njobs + 1, int64_t);
    uint32_t *missing = SF_ARRAY(arena, jobs->njobs + 1, uint32_t);
    uint32_t *ready = SF_ARRAY(arena, jobs->njobs + 1, uint32_t);
    uint32_t nready = 0, ndone = 0;
    for (uint32_t j = 0; j < jobs->njobs; j++) {
        missing[j] = jobs->first_out[j + 1] - jobs->first_out[j];
        if (missing[j] == 0)
            ready[nready++] = j;
    }
    for (; nready > 0; ndone++) {
        uint32_t job = ready[--nready];
        for (uint32_t i = jobs->first_in[job]; i < jobs->first_in[job + 1]; i++) {
            const sf_wait *wait = &jobs->waits[jobs->in[i]];
            int64_t tail = tails[job] + jobs->jobs[job].time + wait->delay;
            tails[wait->before] = tail > tails[wait->before] ? tail : tails[wait->before];
            if (--missing[wait->before] == 0)
                ready[nready++] = wait->before;
        }
    }
    return ndone == jobs->njobs ? tails : NULL;
}

typedef struct listing {
    const sf_jobs *jobs;
    const sf_list_options *options;
    sf_queues queues;
    uint32_t *missing; /* by job: waits that are not over */
    int64_t *ready_at; /* by job: when the waits that are over let it start */
    uint32_t *waiting; /* jobs whose waits are over and that are not yet in a queue */
    uint32_t nwaiting;
    int64_t free_at[SF_MOST_MACHINES], used[SF_MOST_MACHINES];
    uint32_t *left;            /* by micro-batch: jobs that are not in a queue */
    uint32_t first_microbatch; /* with jobs left */
    uint32_t nmicrobatches;
} listing;

static int64_t start_of(const listing *l, uint32_t job)
{
    int64_t start = l->ready_at[job];
    for (uint64_t rest = l->jobs->jobs[job].machines; rest; rest &= rest - 1) {
        int64_t at = l->free_at[__builtin_ctzll(rest)];
        start = at > start ? at : start;
    }
    return start;
}

static bool may_go(const listing *l, uint32_t job)
{
    const sf_job *it = &l->jobs->jobs[job];
    if (l->options->window > 0 && it->microbatch >= l->first_microbatch + l->options->window)
        return false;
    if (!l->jobs->limits)
        return true;
    int64_t most = it->at_end > 0 ? it->at_start + it->at_end : it->at_start;
    for (uint64_t rest = it->machines; rest; rest &= rest - 1) {
        int m = __builtin_ctzll(rest);
        if (l->used[m] + most > l->jobs->limits[m])
            return false;
    }
    return true;
}

static bool is_before(const listing *l, uint32_t a, uint32_t b)
{
    const int64_t *urgency = l->options->urgency;
    if (urgency[a] != urgency[b])
        return urgency[a] > urgency[b];
    if (l->jobs->jobs[a].microbatch != l->jobs->jobs[b].microbatch)
        return l->jobs->jobs[a].microbatch < l->jobs->jobs[b].microbatch;
    return a < b;
}

/* The next job, as an index into `waiting`. The one that can end first settles which machines it is about: of the jobs that
 * want any of these, and can start before it ends, the most urgent is taken (Giffler and Thompson, 1960); of those that can
 * start first, where machines are not to wait. UINT32_MAX: none may go. */
static uint32_t choose(const listing *l)
{
    uint32_t first = UINT32_MAX, best = UINT32_MAX;
    int64_t least_start = INT64_MAX, least_end = INT64_MAX;
    for (uint32_t i = 0; i < l->nwaiting; i++) {
        uint32_t job = l->waiting[i];
        if (!may_go(l, job))
            continue;
        int64_t start = start_of(l, job), end = start + l->jobs->jobs[job].time;
        bool better = l->options->patient
                          ? end < least_end || (end == least_end && start < least_start)
                          : start < least_start;
        if (first == UINT32_MAX || better) {
            first = i;
            least_start = start;
            least_end = end;
        }
    }
    if (first == UINT32_MAX)
        return UINT32_MAX;
    uint64_t machines = l->jobs->jobs[l->waiting[first]].machines;
    for (uint32_t i = 0; i < l->nwaiting; i++) {
        uint32_t job = l->waiting[i];
        if (!(l->jobs->jobs[job].machines & machines) || !may_go(l, job))
            continue;
        int64_t start = start_of(l, job);
        bool rival = l->options->patient ? start < least_end : start == least_start;
        if ((rival || i == first) && (best == UINT32_MAX || is_before(l, job, l->waiting[best])))
            best = i;
    }
    return best;
}

static void put(listing *l, uint32_t index)
{
    uint32_t job = l->waiting[index];
    const sf_job *it = &l->jobs->jobs[job];
    int64_t end = start_of(l, job) + it->time;
    l->waiting[index] = l->waiting[--l->nwaiting];
    sf_queues_add(l->jobs, &l->queues, job);
    for (uint64_t rest = it->machines; rest; rest &= rest - 1) {
        int m = __builtin_ctzll(rest);
        l->free_at[m] = end;
        l->used[m] += it->at_start + it->at_end;
    }
    for (uint32_t o = l->jobs->first_out[job]; o < l->jobs->first_out[job + 1]; o++) {
        const sf_wait *wait = &l->jobs->waits[l->jobs->out[o]];
        int64_t from = end + wait->delay;
        l->ready_at[wait->after] =
            from > l->ready_at[wait->after] ? from : l->ready_at[wait->after];
        if (--l->missing[wait->after] == 0)
            l->waiting[l->nwaiting++] = wait->after;
    }
    l->left[it->microbatch]--;
    while (l->first_microbatch < l->nmicrobatches && l->left[l->first_microbatch] == 0)
        l->first_microbatch++;
}

bool sf_list_schedule(const sf_jobs *jobs, const sf_list_options *options, sf_arena *arena,
                      sf_queues *out)
{
    listing *l = SF_NEW(arena, listing);
    l->jobs = jobs;
    l->options = options;
    l->queues = sf_queues_new(jobs, arena);
    l->missing = SF_ARRAY(arena, jobs->njobs + 1, uint32_t);
    l->ready_at = SF_ARRAY(arena, jobs->njobs + 1, int64_t);
    l->waiting = SF_ARRAY(arena, jobs->njobs + 1, uint32_t);
    for (uint32_t j = 0; j < jobs->njobs; j++)
        l->nmicrobatches = jobs->jobs[j].microbatch >= l->nmicrobatches
                               ? jobs->jobs[j].microbatch + 1
                               : l->nmicrobatches;
    l->left = SF_ARRAY(arena, l->nmicrobatches + 1, uint32_t);
    for (uint32_t j = 0; j < jobs->njobs; j++) {
        l->left[jobs->jobs[j].microbatch]++;
        l->missing[j] = jobs->first_in[j + 1] - jobs->first_in[j];
        if (l->missing[j] == 0)
            l->waiting[l->nwaiting++] = j;
    }
    while (l->first_microbatch < l->nmicrobatches && l->left[l->first_microbatch] == 0)
        l->first_microbatch++;
    uint32_t ndone = 0;
    uint64_t looked = 0;
    for (uint32_t next; ndone < jobs->njobs && (next = choose(l)) != UINT32_MAX; ndone++) {
        looked += 2 * (uint64_t)l->nwaiting;
        put(l, next);
    }
    if (options->looked)
        *options->looked += looked;
    *out = l->queues;
    return ndone == jobs->njobs;
}
