/* Recompute: the step with parts of its forward pass computed again, where the backward pass reads them.
 *
 * A node that the plan marks (sf_plan.again) has a twin: the same op on the same operands, which later phases read
 * instead of it. Twins of what a twin reads come before it; what is not marked is kept, and is read through a barrier,
 * so that nobody finds the two to be equal and computes them once. Each twin stands right before the first who wants
 * it. So what is recomputed is an ordinary step, and all that is known of steps (moves, local graphs, lowering,
 * checks) holds for it. Random bits follow from a key, so twins draw the same.
 *
 * A node that the plan marks as well to be computed `twice` has two: what a twin that is made once reads of it only passes by, and
 * what the backward pass reads, and what leads to that through other such nodes, is made from what stays, through barriers
 * again. So of a chain of parts, that which leaves each is made first, for all of them, and the rest where it is wanted:
 *
 *     kept ──> passing ──> once ──> passing ──> once ──> ...     then, for each part, the last first:
 *                            └─barrier─> twin ──> backward
 *
 *     kept ──> node ──> ... forward            kept ──> node ──> ...
 *                └────────────> backward  ==>    └─barrier─> twin ──> backward
 */
#ifndef SF_PLAN_RECOMPUTE_CLONE_H
#define SF_PLAN_RECOMPUTE_CLONE_H

#include "plan/plan.h"

/* Whether a node may be marked: it is of the forward pass, and to run it twice does nothing but take time. A loop may be,
 * as a whole. */
bool sf_can_recompute(const sf_graph *graph, const sf_node *node);

/* The step with twins, and the plan for it: twins have the layouts of what they are twins of. */
typedef struct sf_recomputed_step {
    sf_graph *graph;
    sf_plan *plan;
    uint32_t *
        node_of; /* by node of `graph`: that of the step; SF_NONE: a barrier. In the plan's arena */
} sf_recomputed_step;

/* The graph's pool is `pool`, that of the step or derived from it. Inside of regions the plan says nothing. */
sf_recomputed_step sf_recompute_step(const sf_graph *graph, const sf_plan *plan, sf_pool *pool);
void sf_recomputed_step_free(sf_recomputed_step *recomputed_step);

/* What a value of the step with twins is in the step; SF_NONE where it is nothing there. */
sf_value sf_recomputed_of(const sf_graph *graph, const sf_recomputed_step *recomputed_step,
                          sf_value value);

/* Whether it is the step: node by node the same op on the same values. SF_EMISMATCH names the first that is not. */
sf_status sf_check_recomputed(const sf_graph *graph, const sf_recomputed_step *recomputed_step,
                              sf_diag *diag);

#endif
