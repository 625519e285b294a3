/* A graph as one looks for something in it: past barriers, into loops and branches, and with recompute known to be the
 * same. */
#ifndef SF_PROG_ATTENTION_GRAPH_VIEW_H
#define SF_PROG_ATTENTION_GRAPH_VIEW_H

#include "op/op.h"

typedef struct sf_scene {
    const sf_graph *graph;
    /* By value: the value that it equals without computation: for the result of a barrier, the
     * operand; for a region's argument, the value given to it. Else SF_NONE. */
    sf_value *source;
    sf_value *same;     /* by value: the first that is made by the same ops from the same values */
    uint32_t *block_of; /* by node: the number of its block */
    uint32_t nblocks;
} sf_scene;

/* Lives in the arena. */
sf_scene scene_of(const sf_graph *graph, sf_arena *arena);

/* The node that makes the value, in this block or one around it; NULL: it is an argument. */
const sf_node *scene_maker(const sf_scene *scene, sf_value value);

static inline bool scene_same(const sf_scene *scene, sf_value a, sf_value b)
{
    return a == b || (a != SF_NONE && b != SF_NONE && scene->same[a] == scene->same[b]);
}

#endif
