/* Schedules that repeat, after Tessel (Lin et al., HPCA 2024): where many turns do the same, find the middle that repeats, with
 * one job of each kind in a period, of which turns they may be; then its beginning and its end.
 *
 * The middle is a modulo schedule: kind k of turn i starts at S(k) + i P. On each machine the kinds lie side by side in the
 * circle of P; a circle that is full has no gap at all, whatever the latency of a turn. The ends are what is left of the order
 * of these starts before the first full period and behind the last one, put together as tightly as waits and memory let it.
 */
#ifndef SF_SOLVE_ORDER_MODULO_SCHEDULE_H
#define SF_SOLVE_ORDER_MODULO_SCHEDULE_H

#include "solve/order/order.h"

/* When each job would start, by one way to repeat: the urgency of jobs, and the order of queues. */
typedef struct sf_repeat {
    int64_t period;
    int64_t span;         /* of a turn, from its first start to its last end */
    const int64_t *start; /* by job */
} sf_repeat;

/* Finds up to `most` ways, best first: those with the shortest (turns - 1) * period + span whose middle fits into memory. The
 * jobs are turns of the same kinds: job = turn * nkinds + kind, the machines and waits within a turn are the same in all, and
 * waits between turns are for earlier ones. Returns 0 where that is not so, or nothing was found. `tries` is per period. */
uint32_t sf_repeat_find(const sf_jobs *jobs, uint32_t nkinds, uint32_t tries, uint32_t most,
                        sf_arena *arena, sf_repeat *out);

#endif
