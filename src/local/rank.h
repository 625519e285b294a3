/* Ranks of a plan: the memory of one, and a check of all. */
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

/* Checks the first rank of each pipeline rank of a plan (local/check_local.h), and representatives
 * of all others against it: ranks differ only in their coordinates, so along each axis of some
 * layout it checks the middle and the last, and the last of all; and that sends and receives of
 * pipeline ranks match (local/messages.h). Uses the threads, unless NULL. The message of
 * SF_EMISMATCH names the fault. *bytes, unless NULL, is the largest memory of a rank. */
sf_status sf_check_plan(const sf_graph *graph, const sf_plan *plan, sf_threads *threads,
                        const sf_target *target, int64_t *bytes, sf_diag *diag);

/* The same of the first ranks of all pipeline ranks of a plan, which are made already. */
sf_status sf_check_groups(int count, sf_local *const *firsts, sf_threads *threads, sf_diag *diag);

#endif
