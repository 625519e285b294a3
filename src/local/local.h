/* The local graph: the part of a step that one rank computes. The step is first scheduled in time
 * (local/time/schedule_step.h); the rank's shards are made of the result
 * (local/shard/shard_graph.h). */
#ifndef SF_LOCAL_LOCAL_H
#define SF_LOCAL_LOCAL_H

#include "local/shard/shard_graph.h"

/* The layouts of each node must be ones that its factors allow: otherwise SF_EINPUT, naming the
 * node, the tensor and the pin. A value that several nodes want in another layout is resharded
 * once, or, if a rank then holds more of it than it was made with (a gathered parameter), once for
 * each phase, so that it need not be kept. A reduction comes right after the node that makes its
 * operand, in the phase of that; all-reduces between which no result is read are one, of several
 * tensors. Ranks have the same collectives in the same order, numbered in their attribute, and
 * nodes that differ in constants and in the offsets of slices. */
sf_status sf_local_new(const sf_graph *whole, const sf_plan *plan, int rank, sf_diag *diag,
                       sf_local **out);
void sf_local_free(sf_local *local);

/* Whether it has loops over micro-batches, or over chunks of another factor. */
bool sf_local_has_microbatches(const sf_local *local);

/* The value of the given step, for one of `whole`: of a recomputed clone, its original. SF_NONE for
 * SF_NONE, and for values that the schedule added. */
sf_value sf_local_value_of_step(const sf_local *local, sf_value whole);

#endif
