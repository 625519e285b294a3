/* Jobs in order: the time and memory of a sequence of jobs on each machine, and good sequences.
 *
 * A job occupies all of its machines for a time, and changes the memory in use on each of them when
 * it starts and when it ends. It waits for others, so long after they end: for their data, or
 * because of a constraint. Constraints on order are waits with a delay of 0.
 *
 * The decision is *queues*: for each machine its jobs, in the order in which it runs them. A job of
 * several machines is in the queue of each. Given queues, every job starts as soon as it may; no
 * later start would be better. Memory of a machine follows from its queue alone, whatever the times
 * of jobs.
 *
 * Times and memory are exact integers. All times and delays together, and all changes of memory, are below 2^62. */
#ifndef SF_SOLVE_ORDER_ORDER_H
#define SF_SOLVE_ORDER_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { SF_MOST_MACHINES = 64 };

typedef struct sf_job {
    int64_t time;             /* not negative */
    uint64_t machines;        /* a bit each, at least one */
    int64_t at_start, at_end; /* change of memory on each of the machines */
    /* jobs of one micro-batch belong together; in doubt, the lowest one goes first */
    uint32_t microbatch;
} sf_job;

typedef struct sf_wait {
    uint32_t before, after; /* jobs */
    int64_t delay;          /* from the end of the one to the start of the other */
} sf_wait;

typedef struct sf_jobs {
    uint32_t njobs, nmachines, nwaits;
    const sf_job *jobs;
    const sf_wait *waits;
    const int64_t *limits; /* of memory, by machine, not negative; NULL: none */

    /* Filled by sf_jobs_index: waits by the job that waits, and by the one that is waited for. */
    const uint32_t *first_in, *in;   /* [njobs + 1] into in[nwaits] */
    const uint32_t *first_out, *out; /* [njobs + 1] into out[nwaits] */
} sf_jobs;

/* Makes the tables that all below read. */
void sf_jobs_index(sf_jobs *jobs, sf_arena *arena);

typedef struct sf_queues {
    uint32_t *counts; /* by machine */
    uint32_t **jobs;  /* by machine: job ids */
} sf_queues;

/* Room for all jobs on their machines; the queues are empty. */
sf_queues sf_queues_new(const sf_jobs *jobs, sf_arena *arena);

/* The job, at the end of the queue of each of its machines. */
void sf_queues_add(const sf_jobs *jobs, sf_queues *queues, uint32_t job);

/* All jobs by when they start; those that start together by when they end, and by their ids. Where the times keep all
 * waits, so do the queues. */
sf_queues sf_queues_by_start(const sf_jobs *jobs, const int64_t *start, sf_arena *arena);

/* One job of a cycle: it waits for the next one (the last for the first), which either must have
 * ended before it starts or is before it in the queue of a machine. */
typedef struct sf_stuck {
    uint32_t job;
    uint32_t machine; /* SF_BY_WAIT: not for the sake of a queue */
} sf_stuck;
enum { SF_BY_WAIT = UINT32_MAX };

typedef struct sf_times {
    int64_t *start, *end; /* by job */
    int64_t makespan;     /* when the last one ends */
    int64_t *peaks;       /* by machine: the most memory in use, not below 0 */
    bool fits;            /* no peak is over its limit */
    uint32_t nstuck;      /* not 0: jobs wait for each other for ever, and the above says nothing */
    sf_stuck *stuck;
} sf_times;

/* Times of the queues, in time that grows with jobs and waits. Each job is once in the queue of
 * each of its machines, and in no other. */
void sf_queues_time(const sf_jobs *jobs, const sf_queues *queues, sf_arena *arena, sf_times *out);

#endif
