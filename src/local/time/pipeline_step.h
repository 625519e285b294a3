/* The step of a pipeline rank: the part that the devices at one position of the pipeline compute.
 *
 * A plan with stages (plan/pipeline/pipeline.h) gives each pipeline rank its part of the step, its
 * micro-batches, and their order. The builder of micro-batches (local/time/microbatch_builder.h)
 * makes its step as well, but one micro-batch after the other: each task has its nodes, on the
 * shard of the batch of its micro-batch. Values of other pipeline ranks are received, values that
 * they read are sent:
 *
 *     rank 0     F0.0 send  F0.1 send                 receive B0.0  receive B0.1   updates
 *     rank 1          receive F1.0 B1.0 send  receive F1.1 B1.1 send               updates
 *
 * It is an ordinary step with a plan of its own; its ranks are made from it as from any other.
 *
 *     nodes of a stage        are in its tasks; invariant ones in the first; updates after all tasks
 *     cheap nodes, barriers,  are repeated by every reader, right before it
 *     slices of the batch
 *     sums over micro-batches are accumulated where their parts are made, and sent once
 *     state                   is on one pipeline rank; on the others its arguments are empty. Of a
 *                             stack of layers, each pipeline rank has its own rows
 *     messages                of a pair, in one direction, arrive in the order of the sender's tasks
 */
#ifndef SF_LOCAL_TIME_PIPELINE_STEP_H
#define SF_LOCAL_TIME_PIPELINE_STEP_H

#include "local/time/microbatches.h"
#include "plan/pipeline/pipeline.h"
#include "plan/pipeline/unstack_layers.h"

/* `parts` lists which arguments are parts of one of the step, if this is the graph of
 * local/time/unstacked_step.h, or is NULL. Of these the pipeline rank's step has the one that it
 * holds, if any. The pipeline and the plan are about the graph; the batch is split into the
 * micro-batches of its schedule, by `time` unless that is NULL (sf_microbatch_plan): it is freed.
 * SF_EMISMATCH if the step cannot be split so, with the op that prevents it. */
sf_status sf_pipe_step_new(const sf_graph *graph, const sf_plan *plan, const sf_pipeline *pipeline,
                           const sf_unstacked *parts, uint32_t group, sf_plan *time, sf_pool *pool,
                           sf_diag *diag, sf_microbatched *out);

#endif
