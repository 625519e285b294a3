/* Views: how a tensor lies in a buffer.
 *
 * Reshapes, transposes, broadcasts and slices need no work if the tensor can be read through other
 * strides. A view never owns memory. */
#ifndef SF_PROG_VIEW_H
#define SF_PROG_VIEW_H

#include "ir/opdef.h"

typedef struct sf_view {
    uint32_t buffer; /* of the program */
    sf_dtype dtype;
    int rank;
    int64_t offset; /* of the first element, in elements */
    int64_t dims[SF_MAX_RANK];
    int64_t strides[SF_MAX_RANK]; /* in elements; 0 repeats, negative runs backwards */
} sf_view;

/* Row-major at the start of a buffer. */
sf_view sf_view_whole(uint32_t buffer, const sf_type *type);

int64_t sf_view_count(const sf_view *view);

/* Of its elements, one after the other. */
int64_t sf_view_size(const sf_view *view);

bool sf_view_is_contiguous(const sf_view *view);

/* Whether it is blocks of one size, one for each of its first dimension, that lie together but not with each other. */
bool sf_view_is_blocks(const sf_view *view);

/* Whether two views of one buffer may have a byte in common. False is certain: their ranges are
 * disjoint, or they alternate within every period. */
bool sf_views_meet(const sf_view *a, const sf_view *b);

/* The op's result as a view of its first operand, if no element has to move: reshape (if the
 * strides allow it), transpose, broadcast_in_dim, slice, reverse, and the parts of complex numbers.
 * False for all others. */
bool sf_view_of_op(const sf_op *op, const sf_view *operand, sf_view *out);

/* Whether the node is one of those. */
bool sf_is_view_op(const sf_node *node);

/* The same bytes as elements that a loop can move: complex numbers are integers as wide as they are, or
 * pairs of floats along one more dimension. */
sf_view sf_view_raw(const sf_view *view);

/* Drops dimensions of size 1. */
sf_view sf_view_squeeze(const sf_view *view);

#endif
