/* Where dimensions of values are cut, so that ops of loops on both sides of a reshape have the same ones.
 *
 * The elements of a tensor, in order, fall into blocks: of f32[64,8,16], blocks of 16 and of 128. A
 * reshape to f32[64,128] keeps only those of 128. A value computed from either can be computed as
 * f32[64,8,16]. So the blocks of a value propagate to all values that ops of loops compute from it,
 * or it from them: along the same dimensions by element-wise ops, by broadcasts, and by reductions
 * along those that stay; and as they are by reshapes. An argument or the result of a product is
 * read in other blocks than it is written in, at no cost.
 *
 * Two halves that become one dimension, by a concatenation, or by padding with as much as there is, are blocks as well; where a
 * pad is between elements, blocks of two. */
#ifndef SF_PROG_LOWER_DIMENSION_CUTS_H
#define SF_PROG_LOWER_DIMENSION_CUTS_H

#include "prog/lower/lowering.h"

/* The kind of a node, for loops. */
typedef enum part {
    PART_NONE,
    PART_POINTWISE,
    PART_BROADCAST,
    PART_FOLD,
    PART_RESHAPE,
    PART_JOIN, /* of halves; see join_of */
} part;

/* Sizes of blocks, each a divisor of the next one, between one element and all of them. */
typedef struct cuts {
    int count;
    int64_t at[SF_MAX_RANK];
} cuts;

typedef struct cutting {
    const sf_graph *graph;
    part *parts;       /* by node */
    cuts *cuts;        /* by value */
    uint32_t *readers; /* by value: how many nodes, results and regions read it */
    bool *is_absorbed; /* by value: only a join needs it, which computes it where it wants it */
    bool any;          /* something is cut that was not */
} cutting;

/* In the arena. */
void find_cuts(const sf_graph *graph, sf_arena *arena, cutting *out);

/* Whether the value has more blocks than its dimensions. */
bool is_cut(const cutting *c, sf_value value);

/* Its dimensions as they are cut, without those of 1, and how many. */
int cut_dims(const cutting *c, sf_value value, int64_t *dims);

/* The same of one dimension of it; *first: which the first of these is among all. */
int cut_dims_of(const cutting *c, sf_value value, int dim, int *first);

/* By dimension of the result: that of the operand, or -1. False where the operand is not part of it: scalars. */
bool linked_dims(const sf_graph *graph, const sf_node *node, part kind, uint32_t operand, int *map);

/* A join: along which dimension, and in which half each operand is. Of a pad only the first is in one. */
typedef struct join {
    int dim, nparts;
    bool alternates; /* the halves alternate element by element, instead of following each other */
    int half[2];
} join;
bool join_of(const sf_graph *graph, const sf_node *node, join *out);

#endif
