/* Schedules that repeat, after Tessel (Lin et al., HPCA 2024): since many micro-batches do the
 * same, find the repeating middle, with one job of each kind in a period, of any micro-batches;
 * then its beginning and its end.
 *
 * The middle is a modulo schedule: kind k of micro-batch i starts at S(k) + i P. On each machine
 * the kinds lie side by side in the circle of P; a full circle has no gap, whatever the latency of
 * a micro-batch. The ends are the starts before the first full period and after the last one, in
 * their order, as tightly as waits and memory allow. */
#ifndef SF_SOLVE_ORDER_MODULO_SCHEDULE_H
#define SF_SOLVE_ORDER_MODULO_SCHEDULE_H

#include "solve/order/order.h"

/* When each job would start, by one way to repeat: the urgency of jobs, and the order of queues. */
typedef struct sf_repeat {
    int64_t period;
    int64_t span;         /* of a micro-batch, from its first start to its last end */
    const int64_t *start; /* by job */
} sf_repeat;

/* Finds up to `most` ways, best first: those with the shortest (micro-batches - 1) * period + span
 * whose middle fits into memory. The jobs are micro-batches of the same kinds: job = micro-batch *
 * nkinds + kind, the machines and waits within a micro-batch are the same in all, and waits between
 * micro-batches are for earlier ones. Returns 0 if that does not hold, or no way was found. `tries`
 * is per period. */
uint32_t sf_repeat_find(const sf_jobs *jobs, uint32_t nkinds, uint32_t tries, uint32_t most,
                        sf_arena *arena, sf_repeat *out);

#endif
