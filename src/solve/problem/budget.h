/* A budget that all parts of the solver share. Whoever works adds to `work` and looks whether the budget is spent; a
 * part that may take only some of it gets a copy with a nearer end.
 */
#ifndef SF_SOLVE_PROBLEM_BUDGET_H
#define SF_SOLVE_PROBLEM_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "sheaf/solve.h"

typedef struct sf_budget {
    const sf_solve_options *options;
    double started, deadline; /* on sf_now; HUGE_VAL: none */
    int64_t work, work_limit; /* done until now, and INT64_MAX where there is no limit */
    bool asked;               /* the listener requested a stop */
    sf_threads *threads;      /* borrowed; NULL: the caller's alone */
    bool known;               /* an answer of this cost is known, to whoever reports */
    int64_t known_cost;
} sf_budget;

/* Nothing is left. Reads the clock: not for the innermost loop. */
bool sf_budget_spent(const sf_budget *budget);

/* A budget that ends after a share (0 to 1) of the remainder of this one. */
sf_budget sf_budget_share(const sf_budget *budget, double share);

/* Sends an event to the listener, if there is one: the best answer so far. */
void sf_budget_report(sf_budget *budget, bool feasible, int64_t cost, int64_t bound);

#endif
