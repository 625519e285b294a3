/* A step in time, one thing after the other, each a step of its own with its plan:
 *
 *     dealt     stacks of layers, with a part for each group of a pipeline
 *     twins     recompute
 *     groups    what the rank's group has of stages that several groups run together
 *     shards    other factors than the batch in micro-batches (co-shard): loops inside of what follows
 *     turns     the batch in micro-batches: a loop, or, of a pipeline, the tasks of the rank's group
 *
 * Turns of the batch are around those of other factors, as ranks are around both. So how the batch is split in time is found
 * before there are loops, and goes through the making of loops as layouts on ranks do: the same loops are made for a plan in
 * which the turns of the batch are the ranks.
 */
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

/* Whether twins compute what they are twins of: SF_EMISMATCH, and the op, where one does not. */
sf_status sf_check_timed(const sf_timed *timed, sf_diag *diag);

/* The value of the step that was given, for one of the step in time: of a twin, what it is a twin of. SF_NONE for SF_NONE, and for
 * what only time made. */
sf_value sf_timed_value_of_step(const sf_timed *timed, sf_value value);

#endif
