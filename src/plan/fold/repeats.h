/* Repeats: the layers of a step, found by their computation alone.
 *
 * A repeat maps a layer to the next layer: each node and argument of layer i to its counterpart in layer i + 1, in the
 * forward pass, the backward pass and the update. Items (nodes and arguments of the top block) that follow each other under
 * this map form a chain:
 *
 *     layer 0     layer 1     layer 2
 *     dot   ----> dot   ----> dot          a chain of three: places 0, 1, 2
 *     w0    ----> w1    ----> w2           their weights, likewise
 *     grad0 ----> grad1 ----> grad2        and the gradients of these, although 2 is computed first
 *
 * A step with an encoder and a decoder has two stacks of layers, each with a map of its own. Names and scopes play no part.
 * Items that differ at the ends of a stack (the first layer reads the embedding) are in no chain or in a shorter one.
 */
#ifndef SF_PLAN_FOLD_REPEATS_H
#define SF_PLAN_FOLD_REPEATS_H

#include "ir/graph.h"

/* An item: the id of a node of the top block, or the number of nodes of the graph plus an argument's index. */
typedef uint32_t sf_item;

typedef struct sf_stack {
    uint32_t layers; /* the length of most of its chains */
    uint32_t items;  /* in all of its chains */
} sf_stack;

typedef struct sf_repeats {
    uint32_t count; /* stacks, the largest first */
    sf_stack *stacks;
    size_t nitems;
    bool *is_item;          /* by item: nodes inside of regions are none */
    uint32_t *stack;        /* by item; SF_NONE: in no chain */
    sf_item *next, *before; /* by item: in its chain, or SF_NONE */
    uint32_t *place;        /* by item: in its chain */
    uint32_t *length;       /* by item: of its chain */
} sf_repeats;

/* Lives in the arena. */
sf_repeats sf_find_repeats(const sf_graph *graph, sf_arena *arena);

/* The item that makes the value; SF_NONE where the value is made inside of a region. */
sf_item sf_item_of(const sf_graph *graph, const sf_repeats *repeats, sf_value value);

#endif
