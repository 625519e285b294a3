/* How stages that several groups run together are split over them.
 *
 * The step is completed once for each set of groups, as if these were ranks along the axis: with what is pinned anyway, and,
 * along the axis, parameters of the set as Megatron has them, and those that outweigh the others by their largest
 * dimension: a vocabulary. Along axes that split no batch, too, these are split by it, so that all ranks have a part of it.
 * Where there are no such parameters, the batch is split. The nodes of the set's stages then are as that completion says, and all
 * others as they were: what is moved at the border follows from that, as anywhere.
 */
#ifndef SF_PLAN_RECIPE_SHARED_STAGES_H
#define SF_PLAN_RECIPE_SHARED_STAGES_H

#include "plan/plan.h"

/* The plan has a pipeline. Nothing is changed where no stage is on several groups. */
sf_status sf_plan_split_sets(const sf_graph *graph, sf_plan *plan, sf_diag *diag);

#endif
