/* The groups of a plan, each with the program of its first rank, simulated together. A plan without a pipeline has one. */
#ifndef SF_SEARCH_PRICE_PRICE_PIPELINE_H
#define SF_SEARCH_PRICE_PRICE_PIPELINE_H

#include "base/thread_pool.h"
#include "local/local.h"
#include "pass/pass.h"
#include "sim/sim.h"

typedef struct sf_rank_run {
    int rank; /* the first of the group */
    sf_arena arena;
    sf_local *local;
    sf_program *program;
    const sf_costs *costs; /* of its ranks */
    sf_simulation sim;
    sf_pass_outcome *outcomes; /* of the passes of the plan, that of none first */
    int noutcomes;
} sf_rank_run;

typedef struct sf_group_runs {
    sf_arena arena;
    int count;
    sf_rank_run *at;
    int busiest;    /* that computes longest */
    double seconds; /* of a step: until the last has ended */
    bool
        is_beyond; /* the limits: the last of `count`, by its memory or by `seconds`, which are its own */
} sf_group_runs;

/* What a plan is of no use beyond: the first group that is beyond ends it. They are lowered on the threads, the first alone where
 * these are not more than groups; what comes of it does not depend on them. */
typedef struct sf_group_limits {
    int64_t memory;      /* bytes of a rank; 0: what its device has */
    double seconds;      /* of a step; HUGE_VAL: whatever it takes */
    sf_threads *threads; /* or NULL */
    bool
        unplaced; /* programs are for their price alone: buffers have no places, passes are not checked and tell no outcomes */
} sf_group_limits;

/* `costs` is of the plan's mesh, or NULL: see sf_plan_rewrite and sf_simulate_groups. To be freed after a failure, too. SF_EINPUT where the plan is none of this graph, SF_EMISMATCH
 * where groups would wait for each other. */
sf_status sf_group_runs_new(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                            const sf_costs *costs, sf_diag *diag, sf_group_runs *out);

/* The same, `costs` given, as far as it keeps to the limits. */
sf_status sf_group_runs_within(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                               const sf_costs *costs, const sf_group_limits *limits, sf_diag *diag,
                               sf_group_runs *out);
void sf_group_runs_free(sf_group_runs *runs);

/* Checks the ranks of all groups against each other (local/rank.h); on the threads, or NULL. */
sf_status sf_group_runs_check(const sf_group_runs *runs, sf_threads *threads, sf_diag *diag);

/* The group of a rank. */
int sf_group_of_rank(const sf_plan *plan, int rank);

#endif
