#include "solve/order/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

/* Waits, gathered by the job at one end of each. */
static void gather(const sf_jobs *jobs, bool incoming, sf_arena *arena, const uint32_t **first_out,
                   const uint32_t **list_out)
{
    uint32_t *first = SF_ARRAY(arena, jobs->njobs + 2, uint32_t);
    uint32_t *list = SF_ARRAY(arena, jobs->nwaits + 1, uint32_t);
    for (uint32_t w = 0; w < jobs->nwaits; w++)
        first[(incoming ? jobs->waits[w].after : jobs->waits[w].before) + 2]++;
    for (uint32_t j = 0; j < jobs->njobs; j++)
        first[j + 2] += first[j + 1];
    for (uint32_t w = 0; w < jobs->nwaits; w++)
        list[first[(incoming ? jobs->waits[w].after : jobs->waits[w].before) + 1]++] = w;
    *first_out = first;
    *list_out = list;
}

void sf_jobs_index(sf_jobs *jobs, sf_arena *arena)
{
    SF_ASSERT(jobs->nmachines <= SF_MOST_MACHINES);
    gather(jobs, true, arena, &jobs->first_in, &jobs->in);
    gather(jobs, false, arena, &jobs->first_out, &jobs->out);
}

sf_queues sf_queues_new(const sf_jobs *jobs, sf_arena *arena)
{
    sf_queues queues = {SF_ARRAY(arena, jobs->nmachines + 1, uint32_t),
                        SF_ARRAY(arena, jobs->nmachines + 1, uint32_t *)};
    uint32_t sizes[SF_MOST_MACHINES] = {0};
    for (uint32_t j = 0; j < jobs->njobs; j++)
        for (uint64_t rest = jobs->jobs[j].machines; rest; rest &= rest - 1)
            sizes[__builtin_ctzll(rest)]++;
    for (uint32_t m = 0; m < jobs->nmachines; m++)
        queues.jobs[m] = SF_ARRAY(arena, sizes[m] + 1, uint32_t);
    return queues;
}

void sf_queues_add(const sf_jobs *jobs, sf_queues *queues, uint32_t job)
{
    for (uint64_t rest = jobs->jobs[job].machines; rest; rest &= rest - 1) {
        int m = __builtin_ctzll(rest);
        queues->jobs[m][queues->counts[m]++] = job;
    }
}

typedef struct timed {
    int64_t start, end;
    uint32_t job;
} timed;

static int by_start(const void *a, const void *b)
{
    const timed *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

sf_queues sf_queues_by_start(const sf_jobs *jobs, const int64_t *start, sf_arena *arena)
{
    sf_queues queues = sf_queues_new(jobs, arena);
    timed *all = SF_ARRAY(arena, jobs->njobs + 1, timed);
    for (uint32_t j = 0; j < jobs->njobs; j++)
        all[j] = (timed){start[j], start[j] + jobs->jobs[j].time, j};
    qsort(all, jobs->njobs, sizeof *all, by_start);
    for (uint32_t j = 0; j < jobs->njobs; j++)
        sf_queues_add(jobs, &queues, all[j].job);
    return queues;
}

/* Time */

typedef struct timing {
    const sf_jobs *jobs;
    const sf_queues *queues;
    uint32_t
        *missing;    /* by job: waits, and places at the head of a queue, that it has not got yet */
    uint32_t *heads; /* by machine: how many of its queue are done */
    int64_t *free_at; /* by machine */
    bool *done;       /* by job */
    uint32_t *ready;  /* jobs with nothing missing: those before nready, in any order */
    uint32_t nready;
    sf_times *out;
} timing;

static void give(timing *t, uint32_t job)
{
    if (--t->missing[job] == 0)
        t->ready[t->nready++] = job;
}

static void give_head(timing *t, uint32_t machine)
{
    if (t->heads[machine] < t->queues->counts[machine])
        give(t, t->queues->jobs[machine][t->heads[machine]]);
}

static void start_job(timing *t, uint32_t job)
{
    const sf_job *it = &t->jobs->jobs[job];
    int64_t start = t->out->start[job];
    for (uint64_t rest = it->machines; rest; rest &= rest - 1) {
        int m = __builtin_ctzll(rest);
        start = t->free_at[m] > start ? t->free_at[m] : start;
    }
    int64_t end = start + it->time;
    t->out->start[job] = start;
    t->out->end[job] = end;
    t->done[job] = true;
    t->out->makespan = end > t->out->makespan ? end : t->out->makespan;
    for (uint32_t o = t->jobs->first_out[job]; o < t->jobs->first_out[job + 1]; o++) {
        const sf_wait *wait = &t->jobs->waits[t->jobs->out[o]];
        int64_t from = end + wait->delay;
        t->out->start[wait->after] =
            from > t->out->start[wait->after] ? from : t->out->start[wait->after];
        give(t, wait->after);
    }
    for (uint64_t rest = it->machines; rest; rest &= rest - 1) {
        uint32_t m = (uint32_t)__builtin_ctzll(rest);
        t->free_at[m] = end;
        t->heads[m]++;
        give_head(t, m);
    }
}

/* Why a job that is not done does not start: something that is not done either. Of a queue it is the head that is waited
 * for, not the job right before, so that circles stay short. */
static sf_stuck reason(const timing *t, uint32_t job)
{
    for (uint64_t rest = t->jobs->jobs[job].machines; rest; rest &= rest - 1) {
        uint32_t m = (uint32_t)__builtin_ctzll(rest);
        uint32_t head = t->queues->jobs[m][t->heads[m]];
        if (head != job)
            return (sf_stuck){head, m};
    }
    for (uint32_t i = t->jobs->first_in[job]; i < t->jobs->first_in[job + 1]; i++) {
        uint32_t before = t->jobs->waits[t->jobs->in[i]].before;
        if (!t->done[before])
            return (sf_stuck){before, SF_BY_WAIT};
    }
    SF_ASSERT(false); /* a job that nothing holds back was not started */
    return (sf_stuck){job, SF_BY_WAIT};
}

/* Goes from job to job that it waits for, until it comes to one for the second time. */
static void find_circle(timing *t, sf_arena *arena)
{
    uint32_t job = 0;
    while (t->done[job])
        job++;
    bool *seen = SF_ARRAY(arena, t->jobs->njobs, bool);
    for (; !seen[job]; job = reason(t, job).job)
        seen[job] = true;
    uint32_t first = job;
    do {
        t->out->nstuck++;
        job = reason(t, job).job;
    } while (job != first);
    t->out->stuck = SF_ARRAY(arena, t->out->nstuck, sf_stuck);
    for (uint32_t i = 0; i < t->out->nstuck; i++) {
        sf_stuck next = reason(t, job);
        t->out->stuck[i] = (sf_stuck){job, next.machine};
        job = next.job;
    }
}

static void find_peaks(const sf_jobs *jobs, const sf_queues *queues, sf_times *out)
{
    out->fits = true;
    for (uint32_t m = 0; m < jobs->nmachines; m++) {
        int64_t used = 0;
        for (uint32_t i = 0; i < queues->counts[m]; i++) {
            const sf_job *job = &jobs->jobs[queues->jobs[m][i]];
            used += job->at_start;
            out->peaks[m] = used > out->peaks[m] ? used : out->peaks[m];
            used += job->at_end;
            out->peaks[m] = used > out->peaks[m] ? used : out->peaks[m];
        }
        out->fits &= !jobs->limits || out->peaks[m] <= jobs->limits[m];
    }
}

void sf_queues_time(const sf_jobs *jobs, const sf_queues *queues, sf_arena *arena, sf_times *out)
{
    memset(out, 0, sizeof *out);
    out->start = SF_ARRAY(arena, jobs->njobs + 1, int64_t);
    out->end = SF_ARRAY(arena, jobs->njobs + 1, int64_t);
    out->peaks = SF_ARRAY(arena, jobs->nmachines + 1, int64_t);
    timing t = {jobs,
                queues,
                SF_ARRAY(arena, jobs->njobs + 1, uint32_t),
                SF_ARRAY(arena, jobs->nmachines + 1, uint32_t),
                SF_ARRAY(arena, jobs->nmachines + 1, int64_t),
                SF_ARRAY(arena, jobs->njobs + 1, bool),
                SF_ARRAY(arena, jobs->njobs + 1, uint32_t),
                0,
                out};
    for (uint32_t j = 0; j < jobs->njobs; j++)
        t.missing[j] = jobs->first_in[j + 1] - jobs->first_in[j] +
                       (uint32_t)__builtin_popcountll(jobs->jobs[j].machines);
    for (uint32_t m = 0; m < jobs->nmachines; m++)
        give_head(&t, m);
    uint32_t ndone = 0;
    for (; t.nready > 0; ndone++)
        start_job(&t, t.ready[--t.nready]);
    if (ndone < jobs->njobs)
        find_circle(&t, arena);
    find_peaks(jobs, queues, out);
}
