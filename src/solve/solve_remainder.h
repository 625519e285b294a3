/* The remaining problem after reductions and elimination: greedy search, branching and local
 * search, by size.
 *
 * Small problems are branched on, first without an answer and then with one; local search solves
 * those in between, and all large ones. If search comes near its bound, strategies that cannot be
 * in a better answer are removed, and the remaining problem is branched on. */
#ifndef SF_SOLVE_SOLVE_REMAINDER_H
#define SF_SOLVE_SOLVE_REMAINDER_H

#include "solve/problem/budget.h"
#include "solve/problem/problem.h"

/* A state of the solution: an assignment, its cost, and a bound. */
typedef struct sf_answer {
    uint32_t *choice; /* [nnodes] */
    bool feasible;
    int64_t cost; /* SF_FORBIDDEN when not feasible */
    int64_t bound;
} sf_answer;

/* Fills `out`, whose choice the caller has made room for, until it is proven or the budget is spent. */
void sf_solve_rest(const sf_problem *problem, sf_budget *budget, sf_arena *arena, sf_answer *out);

#endif
