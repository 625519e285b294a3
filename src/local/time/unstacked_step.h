/* A step whose stacks of layers are dealt out to the groups of a pipeline (plan/stacked_layers.h), with a part for each group: the
 * first thing that is done to such a step.
 *
 * The parts are tensors like others, each in the group that holds it, and all that follows knows nothing of stacks. Of the
 * parts of an argument a group has one, or none: when its step is made (local/time/pipeline_step.h), that part is the argument, so that
 * arguments and results of ranks are those of the step again, in pieces.
 */
#ifndef SF_LOCAL_TIME_UNSTACKED_STEP_H
#define SF_LOCAL_TIME_UNSTACKED_STEP_H

#include "plan/pipeline/unstack_layers.h"
#include "plan/plan.h"

typedef struct sf_partitioned_step {
    sf_unstacked step; /* without a graph, where nothing is dealt out */
    sf_plan *plan;     /* with a pipeline of its own */
} sf_partitioned_step;

/* The graph's pool is `pool`, that of the step or derived from it. */
sf_status sf_partition_step(const sf_graph *graph, const sf_plan *plan, sf_pool *pool,
                            sf_diag *diag, sf_partitioned_step *out);
void sf_partitioned_step_free(sf_partitioned_step *partitioned);

#endif
