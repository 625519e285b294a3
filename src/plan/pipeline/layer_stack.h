/* Stacks: tensors with the weights of several layers, one row per layer, as loops over layers (scan) read them.
 *
 * A row is an index of dimension 0: a layer. A stack is a parameter that the forward pass reads
 * slice by slice along its rows, with the tensors that belong to it row by row: its gradient, its
 * optimizer state, its next value. No op on it mixes rows, so each row could be a tensor of its
 * own, and each may be in the stage that computes its layer (plan/pipeline/unstack_layers.h):
 *
 *     slice ── rows of the parameter, for their layers
 *     each ─── element by element, or otherwise row by row: the update
 *     put, join, pad ── rows that gradients are put into
 *     fold ─── sums over all rows, such as the norm of a gradient
 *
 * A tensor with any other use, in a loop that is not unrolled, say, is not a stack. */
#ifndef SF_PLAN_PIPELINE_LAYER_STACK_H
#define SF_PLAN_PIPELINE_LAYER_STACK_H

#include "ir/graph.h"

typedef struct sf_stacks {
    uint32_t count;
    int64_t *rows;      /* by stack */
    uint32_t *of_value; /* by value: the stack that it is part of; SF_NONE: none */
} sf_stacks;

/* Lives in the arena. */
sf_stacks sf_find_stacks(const sf_graph *graph, sf_arena *arena);

/* The kind of a node with respect to rows. */
typedef enum sf_row_kind {
    SF_ROWS_MIXED, /* something else */
    SF_ROWS_EACH,
    SF_ROWS_HANDED_ON, /* a barrier: each operand by itself */
    SF_ROWS_PUT,       /* dynamic_update_slice, of some */
    SF_ROWS_JOINED,    /* concatenate */
    SF_ROWS_PADDED,    /* with rows that are all the same */
    SF_ROWS_TAKEN,     /* slice */
    SF_ROWS_FOLDED     /* reduce, over rows and maybe more */
} sf_row_kind;

typedef struct sf_row_op {
    sf_row_kind kind;
    const bool
        *has_rows; /* by tensor of the node, operands first, of EACH: its dimension 0 is rows */
    int64_t first, count; /* rows that are put, padded or taken */
} sf_row_op;

/* The node's use of the rows of one of its tensors. */
sf_row_op sf_row_op_of(const sf_graph *graph, const sf_node *node, uint32_t tensor,
                       sf_arena *arena);

/* The value of a constant scalar integer; false where it is none. */
bool sf_constant_int(const sf_graph *graph, sf_value value, int64_t *out);

#endif
