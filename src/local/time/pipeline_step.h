/* The step of a group of a pipeline: what the devices at one position of it compute.
 *
 * A plan with stages (plan/pipeline/pipeline.h) says which part of the step each group runs, in which turns, and in which order. The
 * step of a group is made by the same builder as turns are (local/time/microbatch_builder.h), but turn by turn: each task has its nodes, on
 * the piece of the batch that its turn has. What other groups make and this one reads is received, what they read is sent:
 *
 *     group 0    F0.0 send  F0.1 send                 receive B0.0  receive B0.1   updates
 *     group 1         receive F1.0 B1.0 send  receive F1.1 B1.1 send               updates
 *
 * It is an ordinary step with a plan of its own; ranks of the group are made from it as from any other.
 *
 *     nodes of a stage       stand in the tasks of it; still ones in the first; updates behind all tasks
 *     anywhere               what costs little, barriers, pieces of the batch: where they are read, before who reads them
 *     sums over turns        grow where their parts are made, turn by turn, and go once to who wants them
 *     state                  stands in one group; in the others its arguments are empty. Of a stack of layers, each group has
 *                            its own rows
 *     messages               of two groups, in one direction, arrive in the order of the tasks of who sends
 */
#ifndef SF_LOCAL_TIME_PIPELINE_STEP_H
#define SF_LOCAL_TIME_PIPELINE_STEP_H

#include "local/time/microbatches.h"
#include "plan/pipeline/pipeline.h"
#include "plan/pipeline/unstack_layers.h"

/* `parts` says which arguments are parts of one of the step, as the graph is what it is of (local/time/unstacked_step.h), or is NULL. Of
 * these the group's step has the one that the group holds, if any. The pipeline is about the graph, the plan as well; the batch
 * is cut into the turns of its schedule, as `time` says where that is not NULL (sf_microbatch_plan): it is freed. SF_EMISMATCH where the
 * step cannot be cut so, with the op that says so. */
sf_status sf_pipe_step_new(const sf_graph *graph, const sf_plan *plan, const sf_pipeline *pipeline,
                           const sf_unstacked *parts, uint32_t group, sf_plan *time, sf_pool *pool,
                           sf_diag *diag, sf_microbatched *out);

#endif
