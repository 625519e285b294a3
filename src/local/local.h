/* The local graph: what one rank computes of a step. The step is put in time (local/time/schedule_step.h), and the rank's pieces are made
 * of what comes out (local/shard/shard_graph.h).
 */
#ifndef SF_LOCAL_LOCAL_H
#define SF_LOCAL_LOCAL_H

#include "local/shard/shard_graph.h"

/* The layouts of each node must be ones that its factors allow: otherwise SF_EINPUT, naming the node, the
 * tensor and the pin. A value that several nodes want in another layout is moved once, or, where a rank
 * then holds more of it than it was made with (a gathered parameter), once for each phase, so that it
 * need not be kept. A reduction stands right behind what makes its operand, in the phase of that;
 * all-reduces that nothing reads in between are one, of several tensors. Ranks have the same
 * collectives in the same order, numbered in their attribute, and nodes that differ in constants and
 * in where they slice. */
sf_status sf_local_new(const sf_graph *whole, const sf_plan *plan, int rank, sf_diag *diag,
                       sf_local **out);
void sf_local_free(sf_local *local);

/* Whether loops were made of it: the batch, or another factor, in turns. */
bool sf_local_has_microbatches(const sf_local *local);

/* The value of the step that was given, for one of `whole`: of a twin, what it is a twin of. SF_NONE for SF_NONE, and for
 * what only time made. */
sf_value sf_local_value_of_step(const sf_local *local, sf_value whole);

#endif
