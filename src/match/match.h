/* Finding a sketch in a graph: subgraph isomorphism, by backtracking.
 *
 * A match is a node for each op of the sketch, all different, with the op's name and the given
 * attributes, whose operands are the matches of the op's operands; those of commutative ops in
 * either order. Other readers of the values between, and types, do not matter. */
#ifndef SF_MATCH_MATCH_H
#define SF_MATCH_MATCH_H

#include "match/sketch.h"

typedef struct sf_match {
    sf_value *values; /* by node of the sketch: its match */
} sf_match;

typedef struct sf_matching {
    const sf_graph *graph;
    const sf_sketch *sketch;
    bool (*may)(const void *context, const sf_node *node); /* NULL: any of the top block */
    const void *context;
} sf_matching;

/* All matches, none of which has a node of another: in the order of the graph, the first wins. They
 * live in the arena. SF_EMISMATCH if it takes too long: a self-similar sketch in a self-similar
 * graph. */
sf_status sf_match_all(const sf_matching *matching, sf_arena *arena, sf_diag *diag, size_t *count,
                       sf_match **out);

#endif
