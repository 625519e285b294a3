/* How stages that several pipeline ranks run together are split over them.
 *
 * Sharding propagation runs once for each set of pipeline ranks, as if these were ranks along the
 * axis: with the other pins and, along the axis, parameters of the set as Megatron has them, and
 * those that outweigh the others by their largest dimension: a vocabulary. Along axes that do not
 * split the batch these are split, too, so that all ranks have a part of it. If there are no such
 * parameters, the batch is split. The nodes of the set's stages then have these layouts, and all
 * others keep theirs: reshards at the border follow, as anywhere. */
#ifndef SF_PLAN_RECIPE_SHARED_STAGES_H
#define SF_PLAN_RECIPE_SHARED_STAGES_H

#include "plan/plan.h"

/* The plan has a pipeline. Nothing is changed where no stage is on several groups. */
sf_status sf_plan_split_sets(const sf_graph *graph, sf_plan *plan, sf_diag *diag);

#endif
