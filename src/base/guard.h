/* The guard of a public function, or of a job on a thread: running out of memory in it becomes a
 * status. */
#ifndef SF_BASE_GUARD_H
#define SF_BASE_GUARD_H

#include "base/diag.h"
#include "base/thread_pool.h"

/* Runs the work and returns its status. When memory runs out, the work's allocations are freed and
 * the status is SF_ENOMEM, with a message, unless the work has already reported it; *context is
 * then as the work left it, but pointers in it to memory that the work allocated are dead. */
sf_status sf_guarded(sf_status (*work)(void *context), void *context, sf_diag *diag);

/* Does work(context, i, part) for every i below count on the threads (see base/thread_pool.h; each takes the next that nobody
 * has begun), under a guard each. What it allocates is the caller's afterwards. Where memory ran out in one, this does not
 * return: it ends the caller's guard. */
typedef void sf_each_work(void *context, int64_t i, int part);
void sf_guarded_each(sf_threads *threads, int64_t count, sf_each_work *work, void *context);

#endif
