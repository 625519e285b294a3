/* Cheap recompute: values that need not be sent between layers, because they follow by cheap ops
 * from values that are sent in any case.
 *
 * Layers share common values: if the end of one and the beginning of the next both normalise a
 * stream, its mean and the difference are computed once and go from one to the other beside the
 * stream, at twice its bytes or more. A plan that recomputes layers derives them from the
 * stream. */
#ifndef SF_PLAN_CHEAP_RECOMPUTE_H
#define SF_PLAN_CHEAP_RECOMPUTE_H

#include "ir/uses.h"

typedef struct sf_light {
    uint32_t *place; /* by node: its place in the top block */
    uint32_t *
        last_read; /* by value: the place of the last node of the forward pass that reads it; 0: none does */
    /* by node of the forward pass: all its results follow from values that are read as late, or
     * later */
    bool *is_light;
} sf_light;

/* is_free is by node: it depends on constants alone. Lives in the arena. */
sf_light sf_find_light(const sf_graph *graph, const sf_uses *uses, const bool *is_free,
                       sf_arena *arena);

/* Whether an op is cheap for the size of its result: all but the expensive ones (op/flops.h),
 * lookups, and ops with regions. */
bool sf_op_is_light(const sf_node *node);

#endif
