/* The space of a search along one axis of a mesh: what each node and each argument may do there.
 *
 * Candidates grow from what matters: every factor of every product, and every dimension of every argument
 * that splits, is a seed. A split spreads from a tensor to the ops around it as long as these can run so
 * without communication, and what is met on the way is recorded (Rhino, section 4.3.3). So strides arise
 * only where a reshape asks for them, and every op has few strategies: to run whole, what spread to it,
 * and to pass partial sums on where it is linear in them. Nodes of the same op on the same types share their
 * candidates.
 *
 * The candidates know nothing of other axes: S(dim) is contiguous where nothing else splits the dimension.
 *
 * Layers that repeat are found by hashing: nodes of one class have the same op, types, attributes, phase and
 * scope but for numbers in it, and neighbours that are such again, up to some distance. When folded, all
 * nodes of a class choose the same.
 */
#ifndef SF_SEARCH_AXIS_AXIS_SPACE_H
#define SF_SEARCH_AXIS_AXIS_SPACE_H

#include "plan/plan.h"
#include "shard/strategy.h"

enum { SF_MOST_STRATEGIES = 64 };

/* A transparent node has no strategies but whole: it passes on whatever it gets. */
typedef struct sf_node_space {
    uint32_t nstrategies;
    uint32_t ntensors;       /* operands, then results */
    sf_strategy *strategies; /* whole first */
    sf_share *shares;        /* [strategy][tensor]: what the strategy makes of them */
} sf_node_space;

typedef struct sf_share_space {
    uint32_t nshares;
    sf_share *shares; /* replicated first */
} sf_share_space;

typedef struct sf_axis_space {
    int parts;                 /* of the axis */
    sf_node_space *nodes;      /* by node id, of the top block */
    sf_share_space *arguments; /* by argument */
} sf_axis_space;

/* For an axis of `parts` ranks. Lives in the arena. */
sf_axis_space *sf_axis_space_new(const sf_graph *graph, int parts, sf_arena *arena);

/* By node id: the first node of its class (itself where it is alone); and by argument likewise. */
typedef struct sf_classes {
    uint32_t *nodes, *arguments;
    uint32_t nclasses; /* of nodes */
} sf_classes;
sf_classes sf_classes_of(const sf_graph *graph, sf_arena *arena);

#endif
