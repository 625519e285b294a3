/* What loops and branches do inside when they are split: their regions are steps of their own (plan/region_plan.h). */
#ifndef SF_SEARCH_PRICE_INNER_H
#define SF_SEARCH_PRICE_INNER_H

#include "cluster/cost_model.h"
#include "plan/region_plan.h"

typedef struct sf_inner_work {
    double flops;   /* of a rank, as often as regions run */
    double seconds; /* of collectives, each waited for where it stands; 0 without costs */
} sf_inner_work;

/* `layouts` are of the node: operands, then results. `costs` may be NULL. */
sf_inner_work sf_inner_work_of(const sf_graph *graph, const sf_node *node, const sf_layout *layouts,
                               const sf_mesh *mesh, const sf_costs *costs);

#endif
