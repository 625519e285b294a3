/* Solving a problem: exact reductions, elimination where the structure allows it, bounds and search
 * for the remaining problem. docs/design/solver.md explains the method.
 *
 * The options, and the unit of work, are those of include/sheaf/solve.h. */
#ifndef SF_SOLVE_SOLVE_H
#define SF_SOLVE_SOLVE_H

#include "base/thread_pool.h"
#include "sheaf/solve.h"
#include "solve/problem/problem.h"

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

/* SF_EUSAGE when the options make no sense; that a problem is infeasible is a result. The result lives in
 * `arena`. The threads, which may be NULL, come from the caller because they are outside resources. */
sf_status sf_solve(const sf_problem *problem, const sf_solve_options *options, sf_threads *threads,
                   sf_arena *arena, sf_solve_result *out, sf_diag *diag);

#endif
