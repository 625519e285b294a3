/* Completion: from pins to a whole plan.
 *
 * What is pinned is fixed; the rest follows from it, axis by axis of the mesh:
 *
 *  1. A product that has a pinned split as a batch dimension, such as that of experts, is run so.
 *  2. Splits spread. From a split tensor to the ops that use it and the one that makes it: an op whose
 *     factors can take the split runs so, and its other tensors are split with it. Earlier pins spread
 *     before later ones, so of two splits that meet, the one of the earlier pin goes on.
 *  3. What depends on constants alone (masks, positions, zeros) is made as all its users want it, or
 *     else whole: cutting it costs nothing.
 *  4. Every other op runs whole, on replicated operands; but a partial sum that has no other use passes
 *     through ops that are linear in it as long as it does not grow, so that it is reduced late, once.
 *
 * Arguments that no split reaches are replicated. The layout of a state result is that of its argument.
 */
#ifndef SF_PLAN_PROPAGATE_H
#define SF_PLAN_PROPAGATE_H

#include "plan/pin.h"

/* Fills the layouts of a new plan from plan->pins; of those, the rules hold as plan/pin_rules.h says, and what is
 * wrong with them is SF_EUSAGE. A pin of a recipe that does not fit an argument is SF_EUSAGE, too. A wish that
 * does not come true by the other pins is granted by the first axis that can. */
sf_status sf_plan_propagate(const sf_graph *graph, sf_plan *plan, sf_diag *diag);

/* An op that runs along an axis by one of its factors, whatever pins would make of it. */
typedef struct sf_chosen {
    uint32_t node;
    int axis, factor;
} sf_chosen;

/* The same with ops that are chosen so: they hold first, and spread before pins do. Each can be cut along its factor by
 * itself (plan/op_selector.h); SF_EUSAGE, with the op named, where it cannot beside what is split along earlier axes. */
sf_status sf_plan_propagate_chosen(const sf_graph *graph, sf_plan *plan, size_t count,
                                   const sf_chosen *chosen, sf_diag *diag);

/* Fills in the layouts of the nodes, where those of arguments and results are given, and those of the nodes in `fixed`,
 * by node. What changes from turn to turn spreads first: the data that flows through a loop, rather than what it is
 * multiplied with. */
sf_status sf_plan_propagate_around(const sf_graph *graph, sf_plan *plan, const bool *fixed,
                                   sf_diag *diag);

#endif
