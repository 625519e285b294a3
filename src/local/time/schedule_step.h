/* The step in time: a sequence of rewrites, each of which makes a step with a plan.
 *
 *     unstack        stacks of layers, with a part for each pipeline rank
 *     recompute      recomputed clones
 *     stage groups   shards of stages that several pipeline ranks run together
 *     chunks         other factors than the batch in time (co-shard): inner loops
 *     micro-batches  a loop over the batch, or, of a pipeline, the tasks of the pipeline rank
 *
 * Micro-batches are around chunks, as ranks are around both. So the split of the batch in time is
 * found before there are loops, and goes through the making of loops as layouts on ranks do: the
 * same loops are made for a plan in which the micro-batches are the ranks. */
#ifndef SF_LOCAL_TIME_SCHEDULE_STEP_H
#define SF_LOCAL_TIME_SCHEDULE_STEP_H

#include "local/time/microbatches.h"
#include "local/time/unstacked_step.h"
#include "plan/recompute_clone.h"

/* Each may be empty. */
typedef struct sf_timed {
    const sf_graph *given;
    sf_partitioned_step partitioned;
    sf_recomputed_step recomputed_step;
    sf_microbatched *grouped, *sharded;
    uint32_t ngrouped, nsharded;
    sf_microbatched microbatched;
} sf_timed;

/* The step as it goes on in time for a rank, and its plan, in place of those that are given; `out` owns them, also where it fails. */
sf_status sf_put_in_time(const sf_graph **whole, const sf_plan **plan, int rank, sf_pool *pool,
                         sf_diag *diag, sf_timed *out);
void sf_timed_free(sf_timed *timed);

/* Whether recomputed clones compute the same as their originals: SF_EMISMATCH, and the op, if one
 * does not. */
sf_status sf_check_timed(const sf_timed *timed, sf_diag *diag);

/* The value of the given step, for one of the step in time: of a recomputed clone, its original.
 * SF_NONE for SF_NONE, and for values that the schedule added. */
sf_value sf_timed_value_of_step(const sf_timed *timed, sf_value value);

#endif
