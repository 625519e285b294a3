#include "solve/order/ports.h"

/* What happens: a job ends, or what a job waits for has come. */
typedef enum event_kind { ENDS, COMES } event_kind;

typedef struct event {
    int64_t time;
    uint32_t number; /* of the job, or of the wait; also the order of what happens together */
    event_kind kind;
} event;

typedef struct ports {
    const sf_jobs *jobs;
    const sf_queues *queues;
    uint32_t *missing,
        *heads; /* by job: waits and queues that hold it back; by machine: what is next */
    int64_t *from, *free_at; /* by job: when it may start; by machine: when its port is free */
    event *heap;
    size_t nevents;
    int64_t makespan;
} ports;

static bool comes_before(const event *a, const event *b)
{
    if (a->time != b->time)
        return a->time < b->time;
    return a->kind != b->kind ? a->kind < b->kind : a->number < b->number;
}

static void add_event(ports *p, event_kind kind, uint32_t number, int64_t time)
{
    event added = {time, number, kind};
    size_t at = p->nevents++;
    for (; at > 0 && comes_before(&added, &p->heap[(at - 1) / 2]); at = (at - 1) / 2)
        p->heap[at] = p->heap[(at - 1) / 2];
    p->heap[at] = added;
}

static event take_event(ports *p)
{
    event first = p->heap[0], last = p->heap[--p->nevents];
    size_t at = 0;
    for (size_t next; (next = 2 * at + 1) < p->nevents; at = next) {
        next += next + 1 < p->nevents && comes_before(&p->heap[next + 1], &p->heap[next]);
        if (!comes_before(&p->heap[next], &last))
            break;
        p->heap[at] = p->heap[next];
    }
    p->heap[at] = last;
    return first;
}

/* One thing less holds the job back, from `time` on. */
static void let_go(ports *p, uint32_t job, int64_t time)
{
    if (time > p->from[job])
        p->from[job] = time;
    if (--p->missing[job] == 0)
        add_event(p, ENDS, job, p->from[job] + p->jobs->jobs[job].time);
}

static void let_head_go(ports *p, uint32_t machine, int64_t time)
{
    if (p->heads[machine] < p->queues->counts[machine])
        let_go(p, p->queues->jobs[machine][p->heads[machine]], time);
}

/* When what the job sends is there: its machine sends one thing at a time. */
static int64_t send(ports *p, const sf_wait *wait, int64_t time)
{
    int64_t *free_at = &p->free_at[__builtin_ctzll(p->jobs->jobs[wait->before].machines)];
    *free_at = (*free_at > time ? *free_at : time) + wait->delay;
    return *free_at;
}

static void end_job(ports *p, uint32_t job, int64_t time)
{
    p->makespan = time > p->makespan ? time : p->makespan;
    for (uint32_t o = p->jobs->first_out[job]; o < p->jobs->first_out[job + 1]; o++) {
        const sf_wait *wait = &p->jobs->waits[p->jobs->out[o]];
        add_event(p, COMES, p->jobs->out[o], wait->delay > 0 ? send(p, wait, time) : time);
    }
    for (uint64_t rest = p->jobs->jobs[job].machines; rest; rest &= rest - 1) {
        uint32_t machine = (uint32_t)__builtin_ctzll(rest);
        p->heads[machine]++;
        let_head_go(p, machine, time);
    }
}

int64_t sf_queues_time_with_ports(const sf_jobs *jobs, const sf_queues *queues, sf_arena *arena)
{
    ports p = {.jobs = jobs,
               .queues = queues,
               .missing = SF_ARRAY(arena, jobs->njobs + 1, uint32_t),
               .heads = SF_ARRAY(arena, jobs->nmachines + 1, uint32_t),
               .from = SF_ARRAY(arena, jobs->njobs + 1, int64_t),
               .free_at = SF_ARRAY(arena, jobs->nmachines + 1, int64_t),
               .heap = SF_ARRAY(arena, jobs->njobs + jobs->nwaits + 1, event)};
    for (uint32_t j = 0; j < jobs->njobs; j++)
        p.missing[j] = jobs->first_in[j + 1] - jobs->first_in[j] +
                       (uint32_t)__builtin_popcountll(jobs->jobs[j].machines);
    for (uint32_t m = 0; m < jobs->nmachines; m++)
        let_head_go(&p, m, 0);
    while (p.nevents > 0) {
        event e = take_event(&p);
        if (e.kind == ENDS)
            end_job(&p, e.number, e.time);
        else
            let_go(&p, jobs->waits[e.number].after, e.time);
    }
    return p.makespan;
}
