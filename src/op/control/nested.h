/* The factors of loops and branches: those that their regions have. */
#ifndef SF_OP_NESTED_H
#define SF_OP_NESTED_H

#include "ir/opdef.h"

/* A cut of an operand spreads through the regions, op by op, by their factors, and through what a loop carries, and
 * comes out at other operands and at results: these dimensions, together, are walked by one factor. A gradient that
 * a loop adds up from pieces is a partial sum from its first turn on.
 *
 * A cut that somewhere inside would have to be undone is no factor, unless it is of what flows through a loop, turn by
 * turn: a sequence, say, that attention needs all of. Partial sums that are not carried, but needed, are no obstacle:
 * the regions reduce them. */
void sf_factors_nested(const sf_op *op, sf_factoring *out);

#endif
