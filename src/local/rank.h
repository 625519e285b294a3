/* Ranks of a plan: what one takes, and whether all are right. */
#ifndef SF_LOCAL_RANK_H
#define SF_LOCAL_RANK_H

#include "base/thread_pool.h"
#include "local/local.h"
#include "prog/target.h"

/* Bytes of memory that the rank takes when it is lowered: arguments, constants and the arena. */
int64_t sf_rank_bytes(const sf_local *local, const sf_target *target);

/* Whether a rank that takes so many bytes, by its program or by an estimate, fits into so much memory. */
static inline bool sf_rank_fits(int64_t bytes, int64_t memory)
{
    return bytes <= memory;
}

/* Checks the first rank of each group of a plan (local/check_local.h), and others that stand for all against it: ranks differ in their
 * coordinates alone, so along each axis along which anything is laid out it is the middle and the last, and the last of all; and that
 * groups send and receive the same (local/messages.h). On the threads, or NULL. SF_EMISMATCH says what is wrong with one of them. *bytes,
 * where it is not NULL, is what a rank takes at most. */
sf_status sf_check_plan(const sf_graph *graph, const sf_plan *plan, sf_threads *threads,
                        const sf_target *target, int64_t *bytes, sf_diag *diag);

/* The same of the first ranks of all groups of a plan, which are made already. */
sf_status sf_check_groups(int count, sf_local *const *firsts, sf_threads *threads, sf_diag *diag);

#endif
