/* Queues made better step by step: two neighbours in a queue that the makespan hangs on change places, as long as that helps. */
#ifndef SF_SOLVE_ORDER_ORDER_POLISH_H
#define SF_SOLVE_ORDER_ORDER_POLISH_H

#include "solve/order/order.h"

/* Changes the queues, and times, which are theirs, in place. Times `evaluations` of queues at most.
 * A solution that fits stays so. */
void sf_queues_polish(const sf_jobs *jobs, sf_queues *queues, sf_times *times, uint32_t evaluations,
                      sf_arena *arena);

#endif
