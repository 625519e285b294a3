/* Completing an assignment to stages: the state that its files share (plan/pipeline/stage.h). */
#ifndef SF_PLAN_PIPELINE_STAGE_BUILDER_H
#define SF_PLAN_PIPELINE_STAGE_BUILDER_H

#include "plan/pipeline/stage.h"
#include "plan/pipeline/stage_flow.h"

/* Value v is available in the stages at[first[v]] .. at[end[v]] of the forward pass: those that
 * make or read it. A value that does not depend on the micro-batch, such as a row of a stack of
 * weights, also where values of it alone are. */
typedef struct sf_at_hand {
    uint32_t *first, *end, *at;
} sf_at_hand;

typedef struct sf_staging {
    const sf_graph *graph;
    sf_arena *arena;
    sf_flow flow;
    uint32_t count;
    bool *anywhere;  /* by node */
    uint32_t *stage; /* by node; SF_NONE: not known yet */
    uint32_t *owner; /* by argument; SF_NONE: not known yet */
    sf_at_hand hand;
    int64_t *tally; /* by stage; scratch */
} sf_staging;

/* The value of operand `o` of the node. */
static inline sf_value sf_read_of(const sf_staging *s, const sf_node *node, uint32_t o)
{
    return s->flow.source[node->operands[o]];
}

/* The node that makes the value and has a stage of its own; NULL for an argument, and for a value
 * that every reader computes. */
static inline const sf_node *sf_staged_maker(const sf_staging *s, sf_value value)
{
    const sf_node *maker = sf_maker(s->graph, value);
    return maker && !s->anywhere[maker->id] ? maker : NULL;
}

/* As sf_stages_complete, with stacks of layers as tensors like others. */
sf_status sf_stages_complete_whole(const sf_graph *graph, uint32_t count, const uint32_t *forward,
                                   sf_arena *arena, sf_diag *diag, sf_stages *out);

/* Nodes in regions are where the node with the regions is. */
void sf_stage_regions(const sf_graph *graph, uint32_t *stages);

/* The stages of backward nodes, then those of update nodes, and the owners of their operands. */
void sf_stage_backward(sf_staging *s);
void sf_stage_updates(sf_staging *s);

#endif
