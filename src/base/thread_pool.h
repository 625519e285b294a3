/* A pool of threads: one per process, sized by the user.
 *
 * Work is a range of indices cut into parts; part p always gets the same indices for the same number of
 * threads, so results that depend on the cut are the same in every run. The caller works too: a pool
 * of one thread starts none.
 */
#ifndef SF_BASE_THREAD_POOL_H
#define SF_BASE_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/work_queue.h"

typedef struct sf_threads sf_threads;

/* As many as the process may use: its affinity, not the machine's cores. */
int sf_threads_usable(void);

/* `count` threads in all, the caller among them; 0: sf_threads_usable. NULL when threads cannot be started. */
sf_threads *sf_threads_new(int count);

/* The same, for a number that a user gave: SF_EUSAGE where it is negative. Outside of guards (base/guard.h): a jump
 * cannot end threads. */
sf_status sf_threads_open(int count, sf_diag *diag, sf_threads **out);
void sf_threads_free(sf_threads *threads);
int sf_threads_count(const sf_threads *threads);

/* Simple work, a few instructions an element, on fewer elements than this does not justify a second
 * thread: callers derive their grain from it. Tests lower it, to have small work split too. */
int64_t sf_threads_grain(const sf_threads *threads);
void sf_threads_set_grain(sf_threads *threads, int64_t grain);

/* Lanes beside the pool, made on first use, and ended with it; NULL without memory. */
sf_lanes *sf_threads_lanes(sf_threads *threads);

/* Whether the caller does all parts himself from now on. They are the same parts, so the results are the same. */
void sf_threads_set_alone(sf_threads *threads, bool alone);

/* Runs work(context, part, first, end) for every part of [0, total): parts are contiguous, of equal
 * size up to a multiple of `grain`, at most one per thread; small totals take fewer parts. Returns
 * when all are done. Not to be called from inside of work, but with NULL for the threads: then the
 * caller does all, as part 0. Idle threads spin for a short while and then sleep; the caller does
 * the parts that they do not begin in time. */
typedef void sf_work(void *context, int part, int64_t first, int64_t end);
void sf_threads_run(sf_threads *threads, int64_t total, int64_t grain, sf_work *work,
                    void *context);

#endif
