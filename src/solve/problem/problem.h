/* A problem: pick one strategy per node, at the least cost, within a limit on usage at every time.
 *
 *   cost    the sum of node costs and of edge costs, each edge a matrix over two nodes' strategies
 *   usage   a node's strategy uses so much during an interval; at every time the sum over the intervals
 *           that hold it is at most the limit
 *
 * A problem is built once and never changed after: flat arrays under dense ids, in the arena of its
 * builder. The solver's derived problems (a reduced problem, a part of it) are problems as well,
 * which is why a node may have several uses, the limit may differ from time to time, and a constant
 * may have been split off the cost.
 *
 * Costs are exact integers. SF_FORBIDDEN and above forbids a strategy or a pair; it is kept as
 * SF_FORBIDDEN and takes part in no sum but sf_cost_add's. Over all nodes and edges, the ranges of
 * finite costs sum to less than SF_FORBIDDEN, so no total overflows or looks forbidden.
 *
 * Times are points 0 .. ntimes-1, only those at which some interval begins: at all other times no more
 * is in use than at the point before. */
#ifndef SF_SOLVE_PROBLEM_PROBLEM_H
#define SF_SOLVE_PROBLEM_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "sheaf/solve.h"

typedef struct sf_edge {
    uint32_t a, b;       /* a != b */
    const int64_t *cost; /* (strategies of a, strategies of b), row by row */
} sf_edge;

/* The usage of a node at the points begin .. end-1; begin < end. */
typedef struct sf_use {
    uint32_t node;
    uint32_t begin, end;
    const int64_t *usage; /* (strategies of the node), none negative */
} sf_use;

typedef struct sf_problem {
    uint32_t nnodes, nedges, nuses, ntimes;
    const uint32_t *first; /* [nnodes + 1]: strategies of node v are first[v] .. first[v + 1] - 1 */
    const int64_t *cost;   /* [first[nnodes]] */
    const sf_edge *edges;
    const uint32_t *link_first; /* [nnodes + 1] into links */
    const uint32_t *links;      /* [2 * nedges]: edges at a node, in order of their ids */
    const sf_use *uses;         /* in order of their nodes */
    const uint32_t *use_first;  /* [nnodes + 1] into uses */
    const int64_t *limit;       /* [ntimes] */
    const int64_t *time;        /* [ntimes]: how the user calls a point */
    int64_t base;               /* added to every cost */
} sf_problem;

static inline uint32_t sf_problem_count(const sf_problem *problem, uint32_t node)
{
    return problem->first[node + 1] - problem->first[node];
}

static inline const int64_t *sf_problem_cost(const sf_problem *problem, uint32_t node)
{
    return problem->cost + problem->first[node];
}

static inline uint32_t sf_edge_other(const sf_edge *edge, uint32_t node)
{
    return edge->a ^ edge->b ^ node;
}

static inline int64_t sf_cost_add(int64_t a, int64_t b)
{
    return a >= SF_FORBIDDEN || b >= SF_FORBIDDEN ? SF_FORBIDDEN : a + b;
}

/* Builds a problem. Everything it is given is copied into `arena`, which must outlive the problem. A
 * function that fails has a message that names the node or the edge, and adds nothing. */
typedef struct sf_problem_builder {
    sf_arena *arena;
    struct sf_build_node *nodes;
    struct sf_build_use *uses;
    sf_edge *edges;
    size_t nnodes, nuses, nedges, node_capacity, use_capacity, edge_capacity;
    int64_t strategies; /* in all */
    int64_t cost_sum;   /* of the ranges of costs, 0 among them, of each node and edge */
    int64_t usage_sum;  /* of the largest usage of each use */
    bool limited;
    int64_t limit;
    int64_t base;
    bool points; /* sf_problem_set_limits gave them */
    uint32_t ntimes;
    const int64_t *limits, *times;
} sf_problem_builder;

/* Strategies of a node that was added. */
uint32_t sf_problem_builder_count(const sf_problem_builder *builder, size_t node);

/* At least one strategy; the nodes get the ids 0, 1, 2, ... */
sf_status sf_problem_add_node(sf_problem_builder *builder, uint32_t count, const int64_t *costs,
                              sf_diag *diag);

/* usages[strategies of the node] at the times begin <= t < end; an empty interval uses nothing, one that
 * ends before it begins is refused. */
sf_status sf_problem_add_use(sf_problem_builder *builder, uint32_t node, int64_t begin, int64_t end,
                             const int64_t *usages, sf_diag *diag);

/* A matrix of strategies(a) rows and strategies(b) columns. An edge from a node to itself is its
 * diagonal, added to the node. */
sf_status sf_problem_add_edge(sf_problem_builder *builder, uint32_t a, uint32_t b,
                              const int64_t *costs, sf_diag *diag);

/* Without a limit, uses do not matter. */
void sf_problem_set_limit(sf_problem_builder *builder, int64_t limit);

/* For problems made from problems: uses that are added lie in points 0 .. ntimes-1, which are kept as
 * they are; both arrays are borrowed for as long as the problem lives. */
void sf_problem_set_limits(sf_problem_builder *builder, uint32_t ntimes, const int64_t *limits,
                           const int64_t *times);

sf_status sf_problem_finish(sf_problem_builder *builder, sf_problem *out, sf_diag *diag);

/* Reads the contest's JSON (see docs/design/solver.md) from a text; `file` is for messages. */
sf_status sf_problem_parse(sf_str text, const char *file, sf_arena *arena, sf_problem *out,
                           sf_diag *diag);

/* The same from a file, plain, .gz or .xz. */
sf_status sf_problem_read(const char *path, sf_arena *arena, sf_problem *out, sf_diag *diag);

/* Pairs of strategies, of all edges. */
size_t sf_problem_cells(const sf_problem *problem);

/* The evaluation of an assignment. */
typedef struct sf_verdict {
    bool allowed;   /* it takes nothing forbidden */
    bool feasible;  /* allowed, and within the limit at every time */
    int64_t cost;   /* SF_FORBIDDEN when not allowed */
    uint32_t first; /* the first point over its limit, ntimes when there is none */
    uint32_t
        worst;    /* the point that is furthest over, or least under, its limit; 0 without points */
    int64_t over; /* usage minus limit there; negative when all is within it */
    int64_t surplus; /* the sum over all points of the usage above the limit */
} sf_verdict;

/* choice[nnodes], each a strategy of its node: counted from 0 in each node. */
sf_verdict sf_problem_judge(const sf_problem *problem, const uint32_t *choice, sf_arena *scratch);

/* The usage at each point. */
void sf_problem_usage(const sf_problem *problem, const uint32_t *choice, int64_t *usage);

#endif
