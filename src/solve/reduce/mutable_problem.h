/* A problem under reduction: the same nodes, edges and uses, but mutable.
 *
 * Each rule of reductions.c changes the network into one with the same optimal cost, and if that
 * removes a node, notes how to choose for it once its neighbours are chosen. All costs are
 * non-negative and the sum of their maxima never grows; subtracted amounts are added to `base`.
 *
 * Strategies of a node are removed by compaction, so 0 .. count-1 are always the remaining ones,
 * and `name` has the number of each in the problem. Name arrays are replaced, never changed: notes
 * refer to them. */
#ifndef SF_SOLVE_REDUCE_MUTABLE_PROBLEM_H
#define SF_SOLVE_REDUCE_MUTABLE_PROBLEM_H

#include "solve/problem/problem.h"

typedef struct sf_net_use {
    uint32_t begin, end;
    int64_t *usage; /* (count) */
} sf_net_use;

typedef struct sf_net_node {
    bool alive, queued;
    uint32_t count;
    int64_t *cost;        /* (count) */
    const uint32_t *name; /* (count) */
    uint32_t *links;      /* edges, all alive */
    size_t nlinks, link_capacity;
    sf_net_use *uses;
    size_t nuses, use_capacity;
    bool settled; /* the uses are in order and at most one at any point */
} sf_net_node;

typedef struct sf_net_edge {
    bool alive;
    uint32_t a, b;
    int64_t *cost; /* (count of a, count of b) */
} sf_net_edge;

/* How to choose for a node that is gone: the strategy pick[i * columns + j] (by its name) when its
 * neighbours, `count` of them, 0 to 2, have their i-th and j-th of the names noted here. */
typedef struct sf_net_note {
    uint32_t node;
    uint32_t count;
    uint32_t by[2];
    uint32_t sizes[2];
    const uint32_t *names[2];
    const uint32_t *pick;
} sf_net_note;

typedef struct sf_network {
    sf_arena *arena;
    uint32_t nnodes; /* of the problem, gone ones included */
    sf_net_node *nodes;
    sf_net_edge *edges;
    size_t nedges, edge_capacity;
    sf_net_note *notes;
    size_t nnotes, note_capacity;
    uint32_t ntimes;
    int64_t *limit, *time; /* [ntimes] */
    int64_t base;
    uint32_t *queue; /* a ring of nnodes: nodes to process */
    uint32_t queue_first, queue_count;
    uint32_t *mark; /* [nnodes]: scratch of whoever needs it, all zero between uses */
    bool infeasible;
    int64_t over;      /* infeasible because of a limit: by how much at least, */
    int64_t over_time; /* and the user's name of the point */
    int64_t work;      /* cells that were looked at */
} sf_network;

/* One node's side of an edge: the cost with strategy i, the other having x, is
 * cost[i * own + x * other]. */
typedef struct sf_net_view {
    int64_t *cost;
    size_t own, other;
    uint32_t node, count; /* at the other end */
} sf_net_view;

sf_net_view sf_net_view_of(const sf_network *net, uint32_t edge, uint32_t node);

void sf_network_init(sf_network *net, const sf_problem *problem, sf_arena *arena);

/* Puts a node into the queue; its neighbours too. */
void sf_net_touch(sf_network *net, uint32_t node);
void sf_net_touch_around(sf_network *net, uint32_t node);
bool sf_net_next(sf_network *net, uint32_t *node);

/* Takes the strategies away for which keep[i] is false. None left: the network is infeasible. */
void sf_net_keep(sf_network *net, uint32_t node, const bool *keep);

/* Takes the strategies away for which keep is false, of all nodes: keep is indexed as the costs of the
 * problem that the network was made of, and this is for a network as it was made. */
void sf_net_keep_all(sf_network *net, const sf_problem *problem, const bool *keep);

/* Adds costs[count of a][count of b] between two nodes, to the edge that is there or as a new one. The
 * matrix belongs to the network afterwards. */
void sf_net_join(sf_network *net, uint32_t a, uint32_t b, int64_t *cost);
void sf_net_cut(sf_network *net, uint32_t edge);

/* Adds a use, which belongs to the network afterwards. */
void sf_net_add_use(sf_network *net, uint32_t node, sf_net_use use);

/* Adds up the uses of a node where they overlap. */
void sf_net_settle(sf_network *net, uint32_t node);

/* Takes a node, without links by now, out. */
void sf_net_remove(sf_network *net, uint32_t node);

/* Moves the least cost of a node to the base; functions that change edges normalize them. */
void sf_net_normalize(sf_network *net, uint32_t node);

/* The network as a problem in `arena`, and node_of[nodes of it]: which node of the network each is. */
void sf_net_problem(const sf_network *net, sf_arena *arena, sf_problem *out, uint32_t **node_of);

/* From choices for the problem of sf_net_problem, those of the problem that the network began with. */
void sf_net_lift(const sf_network *net, const uint32_t *node_of, uint32_t count,
                 const uint32_t *choice, uint32_t *out);

#endif
