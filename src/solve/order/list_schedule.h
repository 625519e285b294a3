/* List scheduling: one job after the other is put at the end of its queues, the most urgent of those that can start.
 *
 * No job is put where memory would go over its limit; it comes later, after one that frees some.
 * That can end in a deadlock: micro-batches that were begun hold the memory that the end of each of
 * them needs. A window on micro-batches helps: with a window of w, no job of micro-batch t goes
 * before all of micro-batch t - w have gone. */
#ifndef SF_SOLVE_ORDER_LIST_SCHEDULE_H
#define SF_SOLVE_ORDER_LIST_SCHEDULE_H

#include "solve/order/order.h"

/* By job: the longest chain of times and delays from its end to the end of all. NULL where waits go in a circle. */
int64_t *sf_jobs_tails(const sf_jobs *jobs, sf_arena *arena);

typedef struct sf_list_options {
    const int64_t
        *urgency; /* by job; the highest first, then the lowest micro-batch, then the lowest id */
    bool
        patient; /* a machine may stay idle for a more urgent job that can start before another has ended */
    uint32_t window;  /* 0: none */
    uint64_t *looked; /* or NULL: jobs that were looked at are added to it */
} sf_list_options;

/* False where it got stuck. All jobs are in the queues otherwise, within their limits, and waits are kept. */
bool sf_list_schedule(const sf_jobs *jobs, const sf_list_options *options, sf_arena *arena,
                      sf_queues *out);

#endif
