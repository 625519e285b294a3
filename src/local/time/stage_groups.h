/* Stages that several groups of a pipeline run together, in pieces: the first thing that is done to a step for a group.
 *
 * The groups of such a set are taken for ranks of a mesh of one axis, and what a rank of it has of the step is made as any
 * rank's part is: nodes of the set's stages on pieces, all others whole. What moves between layouts is then nodes of the
 * step, which belong to stages like others:
 *
 *     collectives         to the stage of what makes their operand: all groups of the set run them, in the task of the turn
 *     slices, reshapes    to whoever reads them
 *
 * So what leaves the set is whole in each of its groups, and goes on from there as what one group makes; what enters it is
 * sent whole, and cut. A step with several sets is cut for one after the other. Nodes are the same for all groups, but for
 * constants, so that each knows what the others do.
 */
#ifndef SF_LOCAL_TIME_STAGE_GROUPS_H
#define SF_LOCAL_TIME_STAGE_GROUPS_H

#include "local/time/microbatches.h"
#include "plan/pipeline/pipeline.h"

/* The step as the group has it, and the stages of that, in the arena; layouts of the plan for what comes out say of the
 * pipeline's axis only what other sets split. A group that is not in the set has the first one's part, and runs none of it. SF_EINPUT where the
 * layouts of the plan are none that such stages can have. */
sf_status sf_groups_new(const sf_graph *graph, const sf_plan *plan, const sf_pipeline *pipeline,
                        uint64_t set, uint32_t group, sf_pool *pool, sf_arena *arena, sf_diag *diag,
                        sf_microbatched *out, sf_stages *stages);

#endif
