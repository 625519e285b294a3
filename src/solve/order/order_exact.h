/* The best queues of a few jobs, by branch and bound. */
#ifndef SF_SOLVE_ORDER_ORDER_EXACT_H
#define SF_SOLVE_ORDER_ORDER_EXACT_H

#include "solve/order/order.h"

enum { SF_MOST_EXACT = 128 }; /* jobs */

typedef struct sf_exact {
    bool found;  /* within the limits, and ending before `below` */
    bool proven; /* nothing better is; where nothing was found, nothing is */
    sf_queues queues;
    int64_t makespan;
    uint64_t nodes;
} sf_exact;

/* Visits so many nodes at most. `below` is a known solution's time, INT64_MAX for none. At most
 * SF_MOST_EXACT jobs, whose waits have no cycle. */
void sf_exact_schedule(const sf_jobs *jobs, int64_t below, uint64_t nodes, sf_arena *arena,
                       sf_exact *out);

#endif
