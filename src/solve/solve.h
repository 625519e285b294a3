/* Solving a problem: reductions that lose nothing, elimination where the structure allows it, bounds and
 * search for the rest. docs/solver.md explains the method.
 *
 * The options, and what a budget of work means, are those of include/sheaf/solve.h.
 */
#ifndef SF_SOLVE_SOLVE_H
#define SF_SOLVE_SOLVE_H

#include "base/machine.h"
#include "base/threads.h"
#include "sheaf/solve.h"
#include "solve/problem.h"

typedef struct sf_solve_result {
    sf_stop stop;
    bool feasible;    /* `choice` keeps to the rules; else it is an attempt */
    uint32_t *choice; /* [nnodes] in the arena */
    int64_t cost;     /* of choice; SF_FORBIDDEN when it takes something forbidden */
    int64_t bound; /* nothing that keeps to the rules costs less; SF_FORBIDDEN: there is nothing */
    double gap;    /* (cost - bound) / |cost|; infinite when not feasible */
    int64_t time;  /* not feasible because of the limit: the user's name of a point, */
    int64_t over;  /* and by how much it is passed there; 0 when that is not the reason */
    int64_t work;
    double seconds;
} sf_solve_result;

/* A budget that all parts of the solver share. Whoever works adds to `work` and looks whether the budget is
 * spent; a part that may take only some of it gets a copy with a nearer end. */
typedef struct sf_budget {
    const sf_solve_options *options;
    double started, deadline; /* on sf_now; HUGE_VAL: none */
    int64_t work, work_limit; /* done until now, and INT64_MAX where there is no limit */
    bool asked;               /* the listener asked to stop */
    sf_threads *threads;      /* borrowed; NULL: the caller's alone */
    bool known;               /* an answer of this cost is known, to whoever reports */
    int64_t known_cost;
} sf_budget;

/* Nothing is left. Reads the clock: not for the innermost loop. */
bool sf_budget_spent(const sf_budget *budget);

/* A budget that ends after a share (0 to 1) of what is left of this one. */
sf_budget sf_budget_share(const sf_budget *budget, double share);

/* Tells the user, if he asked to be told: of the best answer that was reported until now. */
void sf_budget_report(sf_budget *budget, bool feasible, int64_t cost, int64_t bound);

/* SF_EUSAGE when the options make no sense; that a problem is infeasible is a result. The result lives in
 * `arena`. The threads, which may be NULL, come from the caller because they are outside resources. */
sf_status sf_solve(const sf_problem *problem, const sf_solve_options *options, sf_threads *threads,
                   sf_arena *arena, sf_solve_result *out, sf_diag *diag);

#endif
