/* What need not be handed on: it follows, by light ops, from what is handed on anyway.
 *
 * Layers share what they compute alike: where the end of one and the beginning of the next both norm a stream, its mean and what is
 * left of it are computed once and go from one to the other beside the stream, at twice its bytes or more. Who computes layers
 * again has them from the stream.
 */
#ifndef SF_PLAN_CHEAP_RECOMPUTE_H
#define SF_PLAN_CHEAP_RECOMPUTE_H

#include "ir/uses.h"

typedef struct sf_light {
    uint32_t *place; /* by node: where it stands in the top block */
    uint32_t *
        last_read; /* by value: the place of the last node of the forward pass that reads it; 0: none does */
    bool *
        is_light; /* by node of the forward pass: all that it makes follows from what is read as late, or later */
} sf_light;

/* is_free says, by node, what depends on constants alone. Lives in the arena. */
sf_light sf_find_light(const sf_graph *graph, const sf_uses *uses, const bool *is_free,
                       sf_arena *arena);

/* Whether an op takes little time for what it makes: all but what is dear (op/flops.h), what looks things up, and what has regions. */
bool sf_op_is_light(const sf_node *node);

#endif
