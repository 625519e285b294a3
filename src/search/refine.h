/* A plan made better, axis by axis of its mesh.
 *
 * Each axis is solved in turn (search/axis/axis.h), the others being as they are, and what comes out is priced
 * (search/price/price.h); the better one stays, until a round over all axes improves nothing, or, from the second on,
 * next to nothing. How much of which reduction of a gradient is exposed, the price of the plan at hand says; what
 * comes out may differ in that, and if it is not better, the axis is solved once more for what lies between.
 * Memory is ignored at first; only where what comes out does not fit does the solver get a limit, and a lower
 * one where the price finds more than it counted.
 */
#ifndef SF_SEARCH_REFINE_H
#define SF_SEARCH_REFINE_H

#include <stdatomic.h>

#include "base/listen.h"
#include "search/axis/axis.h"
#include "search/price/price.h"

/* What all that is priced and refined for one step and cluster shares. It does not change meanwhile, so threads
 * may share it. */
typedef struct sf_ground {
    const sf_graph *graph;
    const sf_efforts *efforts;
    const sf_classes *classes;
    const sf_cluster *cluster;
    int64_t memory;       /* most bytes of a rank */
    bool folded;          /* layers that repeat choose the same */
    int rounds;           /* at most */
    int64_t work;         /* of the solver, each time, */
    int64_t limited_work; /* and under a limit of memory */
    /* Seconds of a plan that is known to fit, or HUGE_VAL: what is slower without a limit is not tried with one. */
    double known;
    double gap; /* at which the solver may stop */
    /* On sf_now, HUGE_VAL: none; past it no axis is begun, but for the first round of a cold beginning. */
    double deadline;
    const sf_interrupt *interrupt; /* or NULL: the same */
    atomic_bool *asked; /* or NULL: somebody asked to stop, as if the deadline had passed */
    int nspaces;        /* one for each size of an axis to solve */
    const sf_axis_space **spaces;
    bool full_state; /* what recipes of ZeRO split is split, be it small or not */
    int npins;       /* texts of the user */
    const char *const *pins;
    const sf_names *names; /* of the step, where there are pins */
} sf_ground;

/* Whether the deadline has passed, or somebody asked to stop. */
bool sf_ground_is_over(const sf_ground *ground);

/* A plan with its price. */
typedef struct sf_priced {
    sf_plan *plan;
    sf_price price;
    bool fits;   /* in the memory of the ground */
    bool spares; /* a recipe that splits state, but for small tensors */
    int breaks;  /* the first pin of the ground that it breaks, counted from 1; 0: none */
    /* Share of the time of reductions that only the update waits for; < 0: there are none. */
    double exposed;
    /* Refined, and rounds ran out while they still helped: axes that may be solved to something else now; 0: none. */
    sf_axes unsettled;
} sf_priced;

/* What breaks no pin comes before what does, and what fits before what does not; then the faster, or, where
 * neither fits, the smaller. */
bool sf_priced_better(const sf_priced *a, const sf_priced *b);

/* What the pins of the ground say on a mesh: sf_rules_new. */
sf_status sf_ground_rules(const sf_ground *ground, const sf_mesh *mesh, sf_arena *arena,
                          sf_diag *diag, sf_rules *out);

/* The price, and which part it exposes of the reductions that only the update waits for: in all, -1 where there are
 * none, and by value (search/axis/axis.h), if asked. */
sf_status sf_estimate_slack(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                            sf_diag *diag, uint8_t *by_value, double *exposed, sf_price *out);

/* Prices at->plan, and holds it against the rules of its mesh. */
sf_status sf_price_on(const sf_ground *ground, const sf_rules *rules, const sf_costs *costs,
                      sf_diag *diag, sf_priced *at);

typedef struct sf_refine_options {
    /* The plan is a beginning without worth, all replicated: the first round takes whatever the solver gives. */
    bool cold;
    int grant; /* the axis that grants wishes (plan/pin_rules.h) in the first round of a cold beginning */
    sf_axes axes;        /* those to solve; 0: all */
    sf_axes settled;     /* of these, what was solved for the plan as it is */
    int rounds;          /* at most, where that is less than the ground says; 0: as it says */
    double guess;        /* of `exposed`, for a plan that tells nothing of it */
    sf_threads *threads; /* or NULL */
} sf_refine_options;

/* Makes at->plan better, in place, and prices it. */
sf_status sf_refine(const sf_ground *ground, const sf_refine_options *options, sf_diag *diag,
                    sf_priced *at);

/* Whether `mesh` is `coarse` with its axis `axis` cut in two, `axis` and the next. */
bool sf_mesh_cuts(const sf_mesh *mesh, const sf_mesh *coarse, int axis);

/* The plan on a mesh that cuts an axis of its own: every rank holds what it held. */
sf_plan *sf_plan_lift(const sf_plan *plan, const sf_graph *graph, const sf_mesh *mesh, int axis);

#endif
