/* Completing an assignment to stages: what its parts share (plan/stage.h). */
#ifndef SF_PLAN_STAGE_RUN_H
#define SF_PLAN_STAGE_RUN_H

#include "ir/uses.h"
#include "plan/stage.h"

/* Value v is at hand in the stages at[first[v]] .. at[first[v + 1]] of the forward pass: where it is made or read. */
typedef struct sf_at_hand {
    uint32_t *first, *at;
} sf_at_hand;

typedef struct sf_staging {
    const sf_graph *graph;
    sf_arena *arena;
    sf_uses uses;
    uint32_t count;
    bool *anywhere;  /* by node */
    uint32_t *stage; /* by node; SF_NONE: not known yet */
    uint32_t *owner; /* by argument; SF_NONE: not known yet */
    sf_at_hand hand;
    int64_t *tally; /* by stage; scratch */
} sf_staging;

/* The node that makes the value and has a stage of its own; NULL for an argument and what is made anywhere. */
static inline const sf_node *sf_staged_maker(const sf_staging *s, sf_value value)
{
    const sf_node *maker = sf_maker(s->graph, value);
    return maker && !s->anywhere[maker->id] ? maker : NULL;
}

/* The stages of backward nodes, then those of update nodes, and the owners of what they read. */
void sf_stage_backward(sf_staging *s);
void sf_stage_updates(sf_staging *s);

#endif
