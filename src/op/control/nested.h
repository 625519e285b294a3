/* The factors of loops and branches: those that their regions have. */
#ifndef SF_OP_NESTED_H
#define SF_OP_NESTED_H

#include "ir/opdef.h"

/* A cut of an operand propagates through the regions, op by op, by their factors, and through
 * loop-carried values, to other operands and to results: one factor walks all these dimensions
 * together. A gradient that a loop adds up from shards is a partial sum from its first iteration
 * on.
 *
 * A cut that must be undone somewhere inside is no factor, unless it is of the data that flows
 * through a loop, iteration by iteration: a sequence, say, that attention needs all of. Partial
 * sums that are not carried, but needed, are allowed: the regions reduce them. */
void sf_factors_nested(const sf_op *op, sf_factoring *out);

#endif
