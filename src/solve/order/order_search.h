/* The search for good queues: list scheduling by several urgencies, schedules that repeat,
 * neighbours swapped, and for a few jobs branch and bound. Each starts from the best of those
 * before; the result is the best of all, and no worse than the given one. */
#ifndef SF_SOLVE_ORDER_ORDER_SEARCH_H
#define SF_SOLVE_ORDER_ORDER_SEARCH_H

#include "solve/order/order.h"

/* Zeros are good defaults. */
typedef struct sf_order_options {
    /* jobs are micro-batches of so many kinds (solve/order/modulo_schedule.h); 0: not known to
     * be */
    uint32_t nkinds;
    const sf_queues *known; /* or NULL */
    uint64_t work;          /* jobs of queues timed, roughly; 0: 2^23, a second or two */
} sf_order_options;

typedef struct sf_order_result {
    bool found;  /* queues that go in no circle; times.fits says whether they keep to the limits */
    bool proven; /* nothing takes less */
    sf_queues queues;
    sf_times times;
    int64_t bound; /* nothing takes less than this */
} sf_order_result;

/* A solution that fits is better, then one with less time, then one with less memory. Waits must
 * have no cycle: otherwise no solution is found. */
void sf_order_search(const sf_jobs *jobs, const sf_order_options *options, sf_arena *arena,
                     sf_order_result *out);

/* A lower bound of all queues: the longest chain, and the load of each machine with the least
 * before and after it. */
int64_t sf_jobs_bound(const sf_jobs *jobs, sf_arena *arena);

#endif
