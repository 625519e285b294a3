/* Recompute in the text.
 *
 * jax.checkpoint writes parts of the forward pass a second time, into the backward pass. So that no
 * compiler merges the two, the second one is after a barrier, or in another loop. But a plan
 * decides which values are kept and which recomputed (plan/recompute_clone.h); the text gives a
 * hint. So both become one node, which has a note:
 *
 *     kept ──> node ──> ... forward             kept ──> node* ──> ... forward
 *       └─barrier─> clone ──> backward  ==>                └─────> backward
 *
 * Two nodes are one if they compute the same from the same values (ir/canon.h), past the barriers
 * of later phases and in normal form after them. A node has the note if one of them is of the
 * forward pass and another of a later phase, unless the text keeps its value as well, because a
 * later phase reads the first or the step returns it. Values of constants have none, nor renamed
 * parts of kept values. If the text computes a value a third time (nested checkpoints), it is noted
 * once.
 *
 * Barriers of the forward pass and those inside of loops that are not unrolled are left alone. */
#ifndef SF_FRONT_REMAT_H
#define SF_FRONT_REMAT_H

#include "ir/graph.h"

/* Phases are known, and nodes merged but for those in different loops of the text: `loops` is
 * whether there were any. True: the graph was changed, or is another one, and phases must be
 * recomputed. */
bool sf_fold_again(sf_graph **graph, bool loops);

/* Nodes are as they will be, and phases known: notes stay on nodes of the forward pass that a later phase reads, or one with the note that does. */
void sf_settle_again(sf_graph *graph);

#endif
