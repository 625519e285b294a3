/* A step with its stacks (plan/pipeline/layer_stack.h) in parts: each part has some of the rows, as a tensor of its own.
 *
 * Arguments, gradients and updates of a stack are there once for each part; slices are slices of the part that has their
 * rows, and sums over rows are sums of sums. With a part for each row, stages are found as if the text had a tensor for each
 * layer (plan/pipeline/stage.h); with a part for each group of a pipeline, its groups have the state of their layers
 * (local/local.c).
 */
#ifndef SF_PLAN_PIPELINE_UNSTACK_LAYERS_H
#define SF_PLAN_PIPELINE_UNSTACK_LAYERS_H

#include "plan/pipeline/layer_stack.h"

/* How a stack is cut. */
typedef struct sf_row_split {
    uint32_t nparts;        /* 0: it stays as it is */
    const uint32_t *of_row; /* by row: its part; each has one row at least */
} sf_row_split;

/* The counterpart in the step. */
typedef struct sf_unstacked_of {
    uint32_t index; /* the node, argument or result; of a helper node, the node that it helps */
    uint32_t stack, part; /* SF_NONE: it is no part */
} sf_unstacked_of;

typedef struct sf_unstacked {
    sf_arena arena; /* of the arrays */
    sf_graph *graph;
    sf_unstacked_of *nodes, *arguments, *results;
    sf_value *value_of; /* by value: that of the step which it is, or is part of, or SF_NONE */
} sf_unstacked;

/* `splits` is by stack. The graph's pool is `pool`, that of the step or derived from it. */
void sf_unstack(const sf_graph *graph, const sf_stacks *stacks, const sf_row_split *splits,
                sf_pool *pool, sf_unstacked *out);
void sf_unstacked_free(sf_unstacked *unstacked);

#endif
