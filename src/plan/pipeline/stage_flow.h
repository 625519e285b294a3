/* Data flow between the nodes of a step, for stages.
 *
 * A layer that the text recomputes reads all its inputs through one optimization_barrier of the
 * backward pass. The result of a barrier is each operand by itself, and if the layer is in two
 * stages, so is the barrier: each has the operands that it reads. So such a barrier has no stage of
 * its own, and a reader of its result reads the operand. */
#ifndef SF_PLAN_PIPELINE_STAGE_FLOW_H
#define SF_PLAN_PIPELINE_STAGE_FLOW_H

#include "ir/uses.h"

typedef struct sf_flow {
    sf_value *source; /* by value: itself, or the operand of the backward pass's barriers */
    sf_uses uses;     /* of sources, by nodes that are no such barriers; results of the step last */
} sf_flow;
sf_flow sf_flow_of(const sf_graph *graph, sf_arena *arena);

/* The source of one value. */
sf_value sf_source_of(const sf_graph *graph, sf_value value);

/* Whether the node is such a barrier. */
bool sf_hands_on(const sf_node *node);

#endif
