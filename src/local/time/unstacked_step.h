/* A step whose stacks of layers are distributed over pipeline ranks (plan/stacked_layers.h), with a
 * part for each: the first rewrite of such a step.
 *
 * The parts are ordinary tensors, each on the pipeline rank that holds it; no later rewrite depends
 * on stacks. A pipeline rank has one part of an argument, or none: in its step
 * (local/time/pipeline_step.h), that part is the argument, so that arguments and results of ranks
 * are shards of those of the step. */
#ifndef SF_LOCAL_TIME_UNSTACKED_STEP_H
#define SF_LOCAL_TIME_UNSTACKED_STEP_H

#include "plan/pipeline/unstack_layers.h"
#include "plan/plan.h"

typedef struct sf_partitioned_step {
    sf_unstacked step; /* without a graph, if no stack is distributed */
    sf_plan *plan;     /* with a pipeline of its own */
} sf_partitioned_step;

/* The graph's pool is `pool`, that of the step or derived from it. */
sf_status sf_partition_step(const sf_graph *graph, const sf_plan *plan, sf_pool *pool,
                            sf_diag *diag, sf_partitioned_step *out);
void sf_partitioned_step_free(sf_partitioned_step *partitioned);

#endif
