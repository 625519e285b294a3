/* Search and bounds for problems that are too large, or too entangled, for elimination.
 *
 * Message passing and annealing feed each other, in rounds. The assignments that are read off the
 * messages have the large structure right, which moves find slowly; annealing improves the details,
 * and finds the prices of usage. Prices become multipliers of the bound, and its multipliers
 * prices.
 *
 * A round is a fixed number of tasks of about equal work, one for the bound and some streams of
 * search, which share nothing; their results are combined after each round. So the answer depends
 * on the work, but not on the number of threads that do the tasks. */
#ifndef SF_SOLVE_SEARCH_LOCAL_SEARCH_H
#define SF_SOLVE_SEARCH_LOCAL_SEARCH_H

#include "solve/problem/budget.h"
#include "solve/problem/problem.h"

/* Of the problem that was given, its base included. */
typedef struct sf_solve_found {
    bool feasible;
    int64_t cost;            /* where feasible */
    int64_t bound;           /* no assignment that keeps to the rules costs less */
    int64_t *strategy_bound; /* [strategies], or NULL: becomes a bound of assignments with each */
    double *multiplier;      /* [ntimes], or NULL: becomes the multipliers of these bounds */
} sf_solve_found;

/* Improves found and choice[nnodes] until the budget is spent, or the gap is that of the options.
 * On entry found->feasible means that choice is an answer to start from, of found->cost, and
 * found->bound is a known bound. If no feasible answer is found, choice is the last attempt. */
void sf_search(const sf_problem *problem, sf_budget *budget, sf_solve_found *found,
               uint32_t *choice);

#endif
