/* Parts of a problem that can be solved apart. */
#ifndef SF_SOLVE_REDUCE_COMPONENTS_H
#define SF_SOLVE_REDUCE_COMPONENTS_H

#include "solve/problem/problem.h"

/* The connected components: part[nnodes] gets their numbers, in order of their first nodes; how many. */
uint32_t sf_parts_find(const sf_problem *problem, sf_arena *scratch, uint32_t *part);

/* Scratch for cutting many parts from one problem, so that each costs only its own size. */
typedef struct sf_cutter {
    const sf_problem *problem;
    uint32_t *place; /* [nnodes], all zero between cuts */
    uint32_t *id;    /* [nedges] */
} sf_cutter;

sf_cutter sf_cutter_new(const sf_problem *problem, sf_arena *arena);

/* The problem of some nodes, in ascending order, and of the edges among them; points are kept. Edges to
 * other nodes are left out, `base` is 0. Shares the matrices, times and limits of the problem. */
void sf_cutter_cut(sf_cutter *cutter, const uint32_t *nodes, uint32_t count, sf_arena *arena,
                   sf_problem *out);

#endif
