/* Reductions of pairs whose body picks: argmax, argmin and the like.
 *
 * Such a body has (value, index) accumulators and a (value, index) element, and each of its results
 * is one of the two values, or one of the two indices, chosen by comparisons between them. Its
 * choice depends then on two relations alone: how the values compare and how the indices compare.
 * The body is tried on every pair of relations, and becomes a table. */
#ifndef SF_RUN_FAST_PICK_H
#define SF_RUN_FAST_PICK_H

#include "ir/opdef.h"

/* How the accumulated value compares to the element's; of floats, NaN is unordered with all
 * others. */
typedef enum sf_relation {
    SF_LESS,
    SF_EQUAL,
    SF_GREATER,
    SF_NAN_FIRST,
    SF_NAN_SECOND,
    SF_NAN_BOTH,
    SF_RELATION_COUNT
} sf_relation;

/* For the relation of the values and that of the indices (the first three): whether the element
 * replaces the accumulator. */
typedef struct sf_pick {
    bool value[SF_RELATION_COUNT][3], index[SF_RELATION_COUNT][3];
} sf_pick;

/* False when the body is not known to do no more than that. The index must be an integer. */
bool sf_pick_of(const sf_op *op, sf_pick *out);

/* The table as a number of 36 bits, and back. */
int64_t sf_pick_number(const sf_pick *pick);
sf_pick sf_pick_of_number(int64_t number);

#endif
