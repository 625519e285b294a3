/* What reductions and elimination leave: answered by greed, branching and search, each where it is good.
 *
 * What is small is branched on, first without an answer and then with one; search has what lies between,
 * and all of what is large. Where search comes near its bound, what cannot be in a better answer is taken
 * away, and the rest of the rest is branched on.
 */
#ifndef SF_SOLVE_SOLVE_REMAINDER_H
#define SF_SOLVE_SOLVE_REMAINDER_H

#include "solve/problem/budget.h"
#include "solve/problem/problem.h"

/* What is known of a problem: an assignment, what it costs, and a bound. */
typedef struct sf_answer {
    uint32_t *choice; /* [nnodes] */
    bool feasible;
    int64_t cost; /* SF_FORBIDDEN when not feasible */
    int64_t bound;
} sf_answer;

/* Fills `out`, whose choice the caller has made room for, until it is proven or the budget is spent. */
sf_status sf_solve_rest(const sf_problem *problem, sf_budget *budget, sf_arena *arena,
                        sf_answer *out, sf_diag *diag);

#endif
