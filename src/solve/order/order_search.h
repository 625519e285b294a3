/* The search for good queues: list scheduling by several urgencies, schedules that repeat, neighbours swapped, and for a few jobs
 * branch and bound. Each starts from the best of those before; the result is the best of all, and no worse than what was known. */
#ifndef SF_SOLVE_ORDER_ORDER_SEARCH_H
#define SF_SOLVE_ORDER_ORDER_SEARCH_H

#include "solve/order/order.h"

/* A zeroed one is what most want. */
typedef struct sf_order_options {
    uint32_t
        nkinds; /* jobs are turns of so many kinds (solve/order/modulo_schedule.h); 0: not known to be */
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

/* Better is what fits, then what takes less time, then what holds less memory. Waits must go in no circle: otherwise nothing is
 * found. */
void sf_order_search(const sf_jobs *jobs, const sf_order_options *options, sf_arena *arena,
                     sf_order_result *out);

/* What no queues can go below: the longest chain, and the load of each machine with the least before and behind it. */
int64_t sf_jobs_bound(const sf_jobs *jobs, sf_arena *arena);

#endif
