/* What the text computes again.
 *
 * jax.checkpoint writes parts of the forward pass a second time, into the backward pass. So that no compiler finds the
 * two to be equal, a barrier stands before the second, or it is in another loop. But whether a value is kept or computed
 * again is for a plan to say (plan/recompute_clone.h); what the text does is a hint. So both become one node, which notes it:
 *
 *     kept ──> node ──> ... forward             kept ──> node* ──> ... forward
 *       └─barrier─> twin ──> backward   ==>                └─────> backward
 *
 * Two nodes are one where they compute the same from the same values (ir/canon.h), past the barriers of later phases and
 * in normal form behind them. A node has the note where one of them is of the forward pass and another of a later phase,
 * unless the text keeps its value as well, because a later phase reads the first or the step returns it. What follows from
 * constants has none, nor what only names a part of something that is kept. Where the text computes something a third time
 * (nested checkpoints), it is noted once.
 *
 * Barriers of the forward pass and those inside of loops that stay are left alone.
 */
#ifndef SF_FRONT_REMAT_H
#define SF_FRONT_REMAT_H

#include "ir/graph.h"

/* Phases are known, and nodes merged but for those in different loops of the text: `loops` says whether there were any.
 * True: the graph was changed, or is another one, and phases are to be found once more. */
bool sf_fold_again(sf_graph **graph, bool loops);

/* Nodes are as they will be, and phases known: notes stay on nodes of the forward pass that a later phase reads, or one with the note that does. */
void sf_settle_again(sf_graph *graph);

#endif
