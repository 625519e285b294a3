/* Moves: common to ops that only move data.
 *
 * Nearly all of them are separable: the source of an element is a sum over dimensions. A move has
 * one list of (to, from) offsets per dimension and means the copies
 *
 *     to[t0 + t1 + ...] = from[f0 + f1 + ...]     for every choice of a pair (t, f) from each list
 *
 * Elements of `to` that no pair names are left alone. */
#ifndef SF_OP_DATA_MOVEMENT_H
#define SF_OP_DATA_MOVEMENT_H

#include "ir/tensor.h"

typedef struct sf_copy_list {
    int64_t count;
    int64_t *to, *from; /* offsets in elements */
} sf_copy_list;

typedef struct sf_copying {
    int rank; /* of lists; one more than a tensor can have, for the offset of a window */
    sf_copy_list lists[SF_MAX_RANK + 1];
} sf_copying;

/* Empty lists; list d has room for capacity[d] pairs, in the arena. */
void sf_copying_init(sf_copying *move, sf_arena *arena, int rank, const int64_t *capacity);

/* A dimension of a shard in memory. */
typedef struct sf_tensor_side {
    sf_span span;
    int64_t size, stride; /* of the shard, in elements */
} sf_tensor_side;

sf_tensor_side sf_tensor_side_of(const sf_tensor *tensor, int dim);

/* Global index g of the result comes from (g * scale + shift) / divisor of the operand, where that
 * divides and lies inside. */
typedef struct sf_line {
    int64_t scale, shift, divisor;
} sf_line;

/* The most pairs that the line gives between sides of so many indices. */
int64_t sf_copying_most(int64_t to, int64_t from, sf_line line);

/* Adds the pairs of one dimension to list `dim`: every index of `to` whose source `from` holds. */
void sf_copying_along(sf_copying *move, int dim, sf_tensor_side to, sf_tensor_side from,
                      sf_line line);

/* Calls `row` for every choice of pairs from all lists but the last: the row's copies are those of
 * the last list, shifted by `to` and `from`. */
typedef void sf_copying_row(void *context, const sf_copy_list *list, int64_t to, int64_t from);
void sf_copying_each(const sf_copying *move, sf_copying_row *row, void *context);

/* Does the copies, for tensors of one element type. */
void sf_copying_copy(const sf_copying *move, const sf_tensor *from, sf_tensor *to);

/* All elements of `to` become the scalar at `from`, of the same element type. */
void sf_copying_fill(const void *from, sf_tensor *to);

/* An element of an index tensor; unsigned ones that an int64 cannot hold become its largest. */
int64_t sf_index_at(const sf_tensor *indices, int64_t flat);

#endif
