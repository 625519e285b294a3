/* Bucket elimination (Dechter 1999): exact for costs alone, where the graph is like a tree.
 *
 * Nodes are eliminated one after the other. Eliminating v leaves a table over its neighbours that are not
 * eliminated yet, its separator: the least cost of v and of all that hangs below it. The size of the
 * largest table is a property of the order; finding the best order is hard, a greedy one is near it on
 * graphs that are like chains.
 */
#ifndef SF_SOLVE_REDUCE_ELIMINATE_H
#define SF_SOLVE_REDUCE_ELIMINATE_H

#include "solve/problem/problem.h"

typedef struct sf_elimination {
    uint32_t *node;            /* [nnodes]: in order of elimination */
    uint32_t *separator_first; /* [nnodes + 1], by position in the order */
    uint32_t *separator;       /* nodes, the next to be eliminated first */
    uint32_t width;            /* the largest separator */
    int64_t cells;             /* of all tables over nodes and separators: the work */
    int64_t kept;              /* of all tables over separators: the memory */
} sf_elimination;

/* The node with the smallest table next. False as soon as the work passes `limit` cells. */
bool sf_order_find(const sf_problem *problem, int64_t limit, sf_arena *arena, sf_elimination *out);

/* The least cost, uses ignored, and an assignment that has it; SF_FORBIDDEN when all is forbidden (then
 * choice is not set). Takes scratch memory of order->kept cells from `scratch`. */
int64_t sf_eliminate(const sf_problem *problem, const sf_elimination *order, sf_arena *scratch,
                     uint32_t *choice);

#endif
