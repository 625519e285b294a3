/* Costs of the tasks of a pipeline, for the search of an order (plan/pipeline/order_tasks.h):
 * estimates, from operations and bytes alone, of which the proportions matter. */
#ifndef SF_PLAN_PIPELINE_STAGE_COSTS_H
#define SF_PLAN_PIPELINE_STAGE_COSTS_H

#include "plan/pipeline/schedule.h"
#include "plan/pipeline/stage.h"

/* By node: time of its operations, and of writing its results, which is most of the time of many
 * nodes. Lives in the arena. */
double *sf_times_by_ops(const sf_graph *graph, sf_arena *arena);

/* Times of passes, and bytes that are kept of a micro-batch, of the stages of the pipe. `time` is
 * by node, in any unit. Updates are left out: they come after all tasks. Lives in the arena; there
 * are no limits. */
sf_pipe_costs sf_costs_of_stages(const sf_graph *graph, const sf_stages *stages,
                                 const sf_pipe *pipe, const double *time, sf_arena *arena);

/* By stage: bytes that it keeps of a micro-batch for the backward pass, but for recomputed nodes,
 * `again`, by node; NULL: none. Lives in the arena. */
int64_t *sf_kept_of_stages(const sf_graph *graph, const sf_stages *stages, uint32_t nmicrobatches,
                           const bool *recomputed, sf_arena *arena);

#endif
