/* The readers of the values of a step's top block, and the nodes that follow from constants. */
#ifndef SF_IR_USES_H
#define SF_IR_USES_H

#include "ir/graph.h"

typedef struct sf_value_use {
    uint32_t node;    /* of the top block; SF_NONE: a result of the step */
    uint32_t operand; /* SF_NONE: in the regions of the node, or a result of the step */
} sf_value_use;

/* Value v is used by at[first[v]] .. at[first[v + 1]], in the order of the block, results last. */
typedef struct sf_uses {
    sf_value_use *at;
    uint32_t *first;
} sf_uses;

/* Lives in the arena. */
sf_uses sf_uses_of(const sf_graph *graph, sf_arena *arena);

/* By node of the top block: whether it depends on constants alone. Lives in the arena. */
bool *sf_find_fixed(const sf_graph *graph, sf_arena *arena);

static inline uint32_t sf_uses_count(const sf_uses *uses, sf_value value)
{
    return uses->first[value + 1] - uses->first[value];
}

#endif
