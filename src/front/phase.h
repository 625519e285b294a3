/* Forward, backward, update: from the flow of data alone, so that every text of a step has the same phases.
 *
 *     forward    what the loss needs, and what is reported beside it
 *     backward   what gradients need besides
 *     update     the rest: what makes new state
 *
 * The gradient of a parameter is what its new value is made of, by optimizer state and element by element, and
 * what is itself made otherwise: by a product, a fold, a scatter. Sums of several such, and conversions, are
 * still gradients.
 */
#ifndef SF_FRONT_PHASE_H
#define SF_FRONT_PHASE_H

#include "ir/graph.h"

/* Fills the phase of every node and the gradient of every argument. Roles and state are known. *roots become
 * the values that the step is about, for sf_graph_arrange: loss, then gradients, those that are there first in front;
 * in the arena. Returns how many. */
size_t sf_find_phases(sf_graph *graph, sf_arena *arena, sf_value **roots);

#endif
