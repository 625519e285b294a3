/* Stages that several pipeline ranks run together, in shards: the first rewrite of a step for a
 * pipeline rank.
 *
 * The pipeline ranks of such a set are treated as ranks of a mesh of one axis, and a rank's part of
 * the step is made as any rank's: nodes of the set's stages on shards, all others whole. Reshards
 * are then nodes of the step, which belong to stages like others:
 *
 *     collectives         to the stage of their operand's maker: the whole set runs them, in the
 *                         task of the micro-batch
 *     slices, reshapes    to their readers
 *
 * So outputs of the set are whole on each of its pipeline ranks, like outputs of a single one; its
 * inputs are sent whole, and sliced. A step with several sets is split for one after the other.
 * Nodes are the same for all pipeline ranks, but for constants, so that each knows the work of the
 * others. */
#ifndef SF_LOCAL_TIME_STAGE_GROUPS_H
#define SF_LOCAL_TIME_STAGE_GROUPS_H

#include "local/time/microbatches.h"
#include "plan/pipeline/pipeline.h"

/* The step of the pipeline rank, and its stages, in the arena; the layouts of the new plan have
 * only the splits of other sets along the pipeline's axis. A pipeline rank that is not in the set
 * has the first one's part, and runs none of it. SF_EINPUT if such stages cannot have the layouts
 * of the plan. */
sf_status sf_groups_new(const sf_graph *graph, const sf_plan *plan, const sf_pipeline *pipeline,
                        uint64_t set, uint32_t group, sf_pool *pool, sf_arena *arena, sf_diag *diag,
                        sf_microbatched *out, sf_stages *stages);

#endif
