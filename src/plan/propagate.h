/* Sharding propagation: from pins to a whole plan.
 *
 * Pinned layouts are fixed; the others follow from them, axis by axis of the mesh:
 *
 *  1. A product that has a pinned split as a batch dimension, such as that of experts, is run so.
 *  2. Splits propagate. From a split tensor to the ops that use it and the one that makes it: an op
 *     whose factors can take the split runs so, and its other tensors are split with it. Earlier
 *     pins propagate before later ones, so if two splits conflict, the one of the earlier pin wins.
 *  3. Values of constants alone (masks, positions, zeros) have the layout that all their readers
 *     want, or else are whole: slicing them is free.
 *  4. Every other op runs whole, on replicated operands; but a partial sum that has no other use
 *     passes through ops that are linear in it as long as it does not grow, so that it is reduced
 *     late, once.
 *
 * Arguments that no split reaches are replicated. The layout of a state result is that of its argument. */
#ifndef SF_PLAN_PROPAGATE_H
#define SF_PLAN_PROPAGATE_H

#include "plan/pin.h"

/* Fills the layouts of a new plan from plan->pins. The rules of plan/pin_rules.h apply to those of
 * the user; a violation is SF_EUSAGE. A pin of a recipe that does not fit an argument is SF_EUSAGE,
 * too. A preference that the other pins do not satisfy is given to the first possible axis. */
sf_status sf_plan_propagate(const sf_graph *graph, sf_plan *plan, sf_diag *diag);

/* An op that runs along an axis by one of its factors, whatever pins would make of it. */
typedef struct sf_chosen {
    uint32_t node;
    int axis, factor;
} sf_chosen;

/* The same with chosen ops: they come first, and propagate before pins do. Each can be split along
 * its factor by itself (plan/op_selector.h); SF_EUSAGE, with the op named, if that is incompatible
 * with splits along earlier axes. */
sf_status sf_plan_propagate_chosen(const sf_graph *graph, sf_plan *plan, size_t count,
                                   const sf_chosen *chosen, sf_diag *diag);

/* Fills in the layouts of the nodes, given those of arguments and results, and those of the nodes
 * in `fixed`, by node. Values that depend on the batch, or on the micro-batch, propagate first: the data that flows
 * through a loop, before its weights. */
sf_status sf_plan_propagate_around(const sf_graph *graph, sf_plan *plan, const bool *fixed,
                                   sf_diag *diag);

#endif
