/* Answers to start from: the best of assignments grown from several seeds (solve/grow.h), and where these
 * pass the limit, of others grown under prices for usage. */
#ifndef SF_SOLVE_START_H
#define SF_SOLVE_START_H

#include "solve/problem/problem.h"

typedef struct sf_start {
    bool feasible;
    int64_t cost; /* where feasible */
    int64_t over; /* else: how far the best attempt is over the limit, where that is why */
    int64_t work; /* cells that were looked at */
} sf_start;

/* choice[nnodes] gets the answer, or where there is none the attempt that is the least over the limit. No
 * more is tried once so much work is done. */
sf_start sf_start_find(const sf_problem *problem, int64_t work, uint32_t *choice);

/* Improves an assignment, of which only the nodes that are `fixed`[nnodes] are given; the others are grown
 * around them, and then all may change. */
sf_start sf_start_improve(const sf_problem *problem, const bool *fixed, uint32_t *choice);

#endif
