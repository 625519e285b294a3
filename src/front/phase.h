/* Forward, backward, update: from data flow alone, so that every text of a step has the same
 * phases.
 *
 *     forward    predecessors of the loss, and of reported values
 *     backward   other predecessors of gradients
 *     update     all others: they make new state
 *
 * The gradient of a parameter is the value from which its new value derives, through optimizer
 * state and element by element, and that is itself made otherwise: by a product, a fold, a scatter.
 * Sums of several such, and conversions, are still gradients. */
#ifndef SF_FRONT_PHASE_H
#define SF_FRONT_PHASE_H

#include "ir/graph.h"

/* Fills the phase of every node and the gradient of every argument. Roles and state are known.
 * *roots become the main values of the step, for sf_graph_arrange: loss, then gradients, the
 * earliest first; in the arena. Returns how many. */
size_t sf_find_phases(sf_graph *graph, sf_arena *arena, sf_value **roots);

#endif
