/* A first answer, in time that grows with the size of the problem and little more. */
#ifndef SF_SOLVE_SEARCH_GREEDY_H
#define SF_SOLVE_SEARCH_GREEDY_H

#include "solve/problem/problem.h"

/* Changes choice[nnodes] so that it keeps to the limits: point by point, the node that gives most room for
 * its cost; then single nodes, within the limits, while that makes it cheaper. True when it keeps to the
 * rules then. Looks at about `work_limit` cells at most, and adds to *work those that it did. */
bool sf_repair(const sf_problem *problem, uint32_t *choice, int64_t work_limit, sf_arena *scratch,
               int64_t *work);

/* Sets choice[nnodes] from nothing: the cheapest strategies, repaired; where that fails, the least usage of
 * every node, made cheaper within the limits. Otherwise as sf_repair. */
bool sf_greedy(const sf_problem *problem, uint32_t *choice, int64_t work_limit, sf_arena *scratch,
               int64_t *work);

#endif
