/* A plan made better, axis by axis of its mesh.
 *
 * Each axis is solved in turn (plan/axis.h), the others being as they are, and what comes out is priced
 * (plan/price.h); the better one stays, until a round over all axes improves nothing. How much of the
 * reductions of gradients ends up hidden is not known before a plan is priced, so an axis is solved for
 * several guesses. Where the price finds more memory than the solver counted, the solver gets a lower limit.
 */
#ifndef SF_PLAN_REFINE_H
#define SF_PLAN_REFINE_H

#include "plan/axis.h"
#include "plan/price.h"

/* A share that is fixed, by value of the step, along one axis. */
typedef struct sf_fixed {
    bool *has; /* or NULL: nothing is */
    sf_share *shares;
} sf_fixed;

/* What all searches on a cluster share. It does not change, so threads may share it. */
typedef struct sf_ground {
    const sf_graph *graph;
    const sf_efforts *efforts;
    const sf_classes *classes;
    const sf_cluster *cluster;
    int64_t memory;  /* most bytes of a rank */
    bool folded;     /* layers that repeat choose the same */
    int rounds;      /* at most */
    int64_t work;    /* of the solver, each time */
    double gap;      /* at which the solver may stop */
    double deadline; /* on sf_now, HUGE_VAL: none; what is begun is ended */
    int nspaces;     /* by axis size */
    const sf_axis_space **spaces;
    int npins; /* texts of the user */
    const char *const *pins;
} sf_ground;

/* A plan with its price. */
typedef struct sf_priced {
    sf_plan *plan;
    sf_price price;
    bool fits;      /* in the memory of the ground */
    double exposed; /* the guess that it was solved for; 0 where it was not */
} sf_priced;

/* What fits comes before what does not; then the faster, or, where neither fits, the smaller. */
bool sf_priced_better(const sf_priced *a, const sf_priced *b);

sf_status sf_price_on(const sf_ground *ground, const sf_costs *costs, sf_diag *diag, sf_priced *at);

typedef struct sf_refine_options {
    bool
        cold; /* the plan is a beginning without worth, all replicated: the first round takes whatever
                  the solver gives */
    sf_axes axes; /* those to solve; 0: all */
    int nguesses;
    const double *guesses; /* of `exposed` (plan/axis.h) */
    sf_threads *threads;   /* or NULL */
} sf_refine_options;

/* Makes at->plan better, in place, and prices it. */
sf_status sf_refine(const sf_ground *ground, const sf_refine_options *options, sf_diag *diag,
                    sf_priced *at);

/* Whether `mesh` is `coarse` with its axis `axis` cut in two, `axis` and the next. */
bool sf_mesh_cuts(const sf_mesh *mesh, const sf_mesh *coarse, int axis);

/* The plan on a mesh that cuts an axis of its own: every rank holds what it held. */
sf_plan *sf_plan_lift(const sf_plan *plan, const sf_graph *graph, const sf_mesh *mesh, int axis);

#endif
