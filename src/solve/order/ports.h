/* Times of queues where a delay is a message: those that one machine sends go one after the other, in the order in which they are ready.
 * A job of several machines sends by the first of them. */
#ifndef SF_SOLVE_ORDER_PORTS_H
#define SF_SOLVE_ORDER_PORTS_H

#include "solve/order/order.h"

/* When the last job ends; of queues that sf_queues_time does not find stuck. */
int64_t sf_queues_time_with_ports(const sf_jobs *jobs, const sf_queues *queues, sf_arena *arena);

#endif
