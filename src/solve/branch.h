/* Branch and bound over reduced problems: exact, for small problems.
 *
 * A node of the search tree is a subset of the strategies. Visiting it, the problem of these is
 * reduced; a bound is found, for the whole and for each strategy, and strategies whose bound
 * exceeds the best known answer are removed. Unless none is left, the subset is split at a node of
 * the graph. The tree's nodes are visited in order of their bounds, so the least of them is a bound
 * for the problem at any time.
 *
 * Nodes are visited in rounds of a fixed number, which threads share, and their results are used in
 * the order of the round: the answer does not depend on the number of threads. */
#ifndef SF_SOLVE_BRANCH_H
#define SF_SOLVE_BRANCH_H

#include "solve/problem/budget.h"
#include "solve/problem/problem.h"

typedef struct sf_branch {
    sf_budget *budget;
    int64_t
        cost;   /* in: an answer of this cost is known, only better ones count. Out: of the best */
    bool found; /* out: `choice` was set, to an answer of that cost */
    int64_t bound;  /* in: known; out: nothing costs less. The cost itself when the tree is done */
    int64_t visits; /* out: nodes of the tree */
    const double *multiplier; /* in: [ntimes] to start from, or NULL */
} sf_branch;

/* The work of the root's bound: with less work no result is found. */
int64_t sf_branch_least_work(const sf_problem *problem);

/* choice[nnodes] is written only when something better is found. */
void sf_branch_solve(sf_branch *branch, const sf_problem *problem, uint32_t *choice,
                     sf_arena *arena);

#endif
