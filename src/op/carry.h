/* Ops that only hand on the elements of their first operand: in another type, shape or order, some of them, or each several times.
 *
 * Whoever looks for what made a value, or for who uses it, says which of these it looks through; what the others would change
 * is the reason that it stops there. */
#ifndef SF_OP_CARRY_H
#define SF_OP_CARRY_H

#include "op/op.h"

enum {
    SF_CARRIES_ALIKE = 1,   /* optimization_barrier */
    SF_CARRIES_TYPE = 2,    /* convert: elements are rounded */
    SF_CARRIES_SHAPE = 4,   /* reshape */
    SF_CARRIES_ORDER = 8,   /* transpose: dimensions have other places */
    SF_CARRIES_PART = 16,   /* slice: some elements */
    SF_CARRIES_CHOICE = 32, /* dynamic_slice: which of them depends on numbers */
    SF_CARRIES_COPIES = 64, /* broadcast_in_dim: there are more of them */
};

/* Whether the node, which may be NULL, carries in one of these ways. */
bool sf_carries(const sf_node *node, unsigned ways);

#endif
