#include "solve/order/order_polish.h"

#include <string.h>

typedef struct polishing {
    const sf_jobs *jobs;
    sf_queues *queues;
    sf_times *times;
    uint32_t evaluations; /* left */
} polishing;

static bool waits_for(const sf_jobs *jobs, uint32_t after, uint32_t before)
{
    for (uint32_t i = jobs->first_in[after]; i < jobs->first_in[after + 1]; i++)
        if (jobs->waits[jobs->in[i]].before == before)
            return true;
    return false;
}

static uint32_t place_in(const sf_queues *queues, uint32_t machine, uint32_t job)
{
    uint32_t at = 0;
    while (queues->jobs[machine][at] != job)
        at++;
    return at;
}

/* Changes the places of two neighbours, on every machine that has both. False, and nothing changed, where they are no
 * neighbours on one of them. */
static bool swap(polishing *p, uint32_t first, uint32_t second)
{
    uint64_t both = p->jobs->jobs[first].machines & p->jobs->jobs[second].machines;
    uint32_t places[SF_MOST_MACHINES];
    for (uint64_t rest = both; rest; rest &= rest - 1) {
        uint32_t m = (uint32_t)__builtin_ctzll(rest);
        places[m] = place_in(p->queues, m, first);
        if (places[m] + 1 == p->queues->counts[m] || p->queues->jobs[m][places[m] + 1] != second)
            return false;
    }
    for (uint64_t rest = both; rest; rest &= rest - 1) {
        uint32_t m = (uint32_t)__builtin_ctzll(rest);
        p->queues->jobs[m][places[m]] = second;
        p->queues->jobs[m][places[m] + 1] = first;
    }
    return true;
}

/* How many jobs end last, and how late: fewer that do is a step towards none. */
static uint32_t count_last(const sf_jobs *jobs, const sf_times *times)
{
    uint32_t count = 0;
    for (uint32_t j = 0; j < jobs->njobs; j++)
        count += times->end[j] == times->makespan;
    return count;
}

static bool is_better(const sf_jobs *jobs, const sf_times *a, const sf_times *b)
{
    if (a->nstuck > 0 || a->fits < b->fits)
        return false;
    if (a->makespan != b->makespan)
        return a->makespan < b->makespan;
    return count_last(jobs, a) < count_last(jobs, b);
}

static void copy_times(const sf_jobs *jobs, sf_times *to, const sf_times *from)
{
    memcpy(to->start, from->start, jobs->njobs * sizeof *to->start);
    memcpy(to->end, from->end, jobs->njobs * sizeof *to->end);
    memcpy(to->peaks, from->peaks, jobs->nmachines * sizeof *to->peaks);
    to->makespan = from->makespan;
    to->fits = from->fits;
}

static bool try_swap(polishing *p, uint32_t first, uint32_t second, sf_arena *arena)
{
    if (p->evaluations == 0 || waits_for(p->jobs, second, first) || !swap(p, first, second))
        return false;
    p->evaluations--;
    sf_mark mark = sf_arena_mark(arena);
    sf_times times;
    sf_queues_time(p->jobs, p->queues, arena, &times);
    bool better = is_better(p->jobs, &times, p->times);
    if (better)
        copy_times(p->jobs, p->times, &times);
    else
        swap(p, second, first);
    sf_arena_reset(arena, mark);
    return better;
}

/* The job before this one in a queue, where it is for that one that this starts no sooner; UINT32_MAX: it is for a wait. */
static uint32_t held_by(const polishing *p, uint32_t job)
{
    for (uint64_t rest = p->jobs->jobs[job].machines; rest; rest &= rest - 1) {
        uint32_t m = (uint32_t)__builtin_ctzll(rest), at = place_in(p->queues, m, job);
        if (at > 0 && p->times->end[p->queues->jobs[m][at - 1]] == p->times->start[job])
            return p->queues->jobs[m][at - 1];
    }
    return UINT32_MAX;
}

static uint32_t awaited_by(const polishing *p, uint32_t job)
{
    for (uint32_t i = p->jobs->first_in[job]; i < p->jobs->first_in[job + 1]; i++) {
        const sf_wait *wait = &p->jobs->waits[p->jobs->in[i]];
        if (p->times->end[wait->before] + wait->delay == p->times->start[job])
            return wait->before;
    }
    return UINT32_MAX;
}

/* Goes back from the end along the jobs that delay each job, and tries each pair of neighbours on
 * the way. Jobs that take no time could lead to cycles, so the number of steps is bounded. */
static bool improve(polishing *p, sf_arena *arena)
{
    uint32_t job = 0;
    for (uint32_t j = 0; j < p->jobs->njobs; j++)
        job = p->times->end[j] > p->times->end[job] ? j : job;
    for (uint32_t steps = 0; steps < p->jobs->njobs && p->times->start[job] > 0; steps++) {
        uint32_t before = held_by(p, job);
        if (before != UINT32_MAX && try_swap(p, before, job, arena))
            return true;
        if (before == UINT32_MAX)
            before = awaited_by(p, job);
        if (before == UINT32_MAX)
            return false;
        job = before;
    }
    return false;
}

void sf_queues_polish(const sf_jobs *jobs, sf_queues *queues, sf_times *times, uint32_t evaluations,
                      sf_arena *arena)
{
    polishing p = {.jobs = jobs, .queues = queues, .times = times, .evaluations = evaluations};
    while (p.evaluations > 0 && improve(&p, arena))
        ;
}
