/* Recompute (rematerialisation): the step with parts of its forward pass computed once more, where
 * the backward pass reads them.
 *
 * A node that the plan marks (sf_plan.recomputed) has a clone: the same op on the same operands,
 * which later phases read instead of it. Clones of a clone's operands come before it; unmarked
 * values are kept, and are read through a barrier, so that common subexpressions are not merged.
 * Each clone comes right before its first reader. So the result is an ordinary step, and all later
 * stages (reshards, local graphs, lowering, checks) treat it as one. Random bits follow from a key,
 * so clones draw the same.
 *
 * A node that the plan marks as recomputed per part as well has two clones: an intermediate one,
 * for clones of other parts, and one for the backward pass, which is made from kept values, through
 * barriers. So of a chain of parts, the outputs of each are recomputed first, for all of them, and
 * the inner nodes where they are needed:
 *
 *     kept ──> inner ──> output ──> inner ──> output ──> ...     then, for each part, the last first:
 *                            └─barrier─> clone ──> backward
 *
 *     kept ──> node ──> ... forward            kept ──> node ──> ...
 *               └────────────> backward  ==>    └─barrier─> clone ──> backward */
#ifndef SF_PLAN_RECOMPUTE_CLONE_H
#define SF_PLAN_RECOMPUTE_CLONE_H

#include "plan/plan.h"

/* Whether a node may be marked: it is of the forward pass, and a second run has no effect but its
 * time. A loop may be, as a whole. */
bool sf_can_recompute(const sf_graph *graph, const sf_node *node);

/* The step with clones, and the plan for it: clones have the layouts of their originals. */
typedef struct sf_recomputed_step {
    sf_graph *graph;
    sf_plan *plan;
    uint32_t *
        node_of; /* by node of `graph`: that of the step; SF_NONE: a barrier. In the plan's arena */
} sf_recomputed_step;

/* The graph's pool is `pool`, that of the step or derived from it. Inside of regions the plan says nothing. */
sf_recomputed_step sf_recompute_step(const sf_graph *graph, const sf_plan *plan, sf_pool *pool);
void sf_recomputed_step_free(sf_recomputed_step *recomputed_step);

/* The original in the step of a value of the step with clones; SF_NONE if it has none. */
sf_value sf_recomputed_of(const sf_graph *graph, const sf_recomputed_step *recomputed_step,
                          sf_value value);

/* Whether it is the step: node by node the same op on the same values. SF_EMISMATCH names the first that is not. */
sf_status sf_check_recomputed(const sf_graph *graph, const sf_recomputed_step *recomputed_step,
                              sf_diag *diag);

#endif
