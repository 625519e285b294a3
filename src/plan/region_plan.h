/* The plan of a region: the body of a loop, its condition, or a branch, as a step of its own.
 *
 * Its arguments and results have the layouts of the node: a carried value has one layout, as
 * operand, in each iteration and as result, and a condition is the same on all ranks. The layouts
 * of ops inside follow from that (plan/propagate.h), so a plan has none for them, but for loops
 * over micro-batches (local/time/microbatches.h). Reshards are inside; but an invariant operand
 * enters the loop in the layout of its readers, so it is resharded before the first iteration. */
#ifndef SF_PLAN_REGION_PLAN_H
#define SF_PLAN_REGION_PLAN_H

#include "plan/plan.h"

typedef struct sf_region_plan {
    sf_graph *graph;
    sf_plan *plan;
} sf_region_plan;

/* `layouts` are of the node: operands, then results. `said` has those of nodes inside, by node of the whole, NULL where
 * they follow; it may be NULL itself. The graph's pool is `pool`, that of the step or derived from it. */
sf_status sf_plan_region(const sf_graph *whole, const sf_mesh *mesh, sf_layout *const *said,
                         const sf_node *node, const sf_layout *layouts, uint32_t region,
                         sf_pool *pool, sf_diag *diag, sf_region_plan *out);
void sf_region_plan_free(sf_region_plan *region);

/* Shows all regions of a node that runs `times` times, each with its plan, and how often it runs:
 * for callers that count work inside. Such a caller calls this for inner loops. Regions that cannot
 * be planned are left out. */
typedef void sf_see_region(void *context, const sf_graph *graph, const sf_plan *plan, double times);
void sf_plan_regions(const sf_graph *whole, const sf_mesh *mesh, sf_layout *const *said,
                     const sf_node *node, const sf_layout *layouts, double times,
                     sf_see_region *see, void *context);

/* Whether the node can have these layouts: the first tensor that cannot be so, or -1. */
int sf_region_misfit(const sf_node *node, const sf_layout *layouts);

#endif
