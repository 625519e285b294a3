/* The best layouts along one axis of a plan, the other axes being as they are: a problem for solve/.
 *
 * A variable for every class of nodes (its strategy) and of arguments (its share), and one for every value
 * that several nodes read: the layout in which they find it, so that it is moved there once (for each
 * phase; see search/axis/axis_builder.h). Costs are seconds: ops by search/price/node_work.h, moves between what is made and what
 * is wanted by shard/reshard.h, with the layouts of the other axes in place. Values that are not stored are
 * not moved, but for what folds make, whose partial results may have to be combined. The layout of a state
 * result is that of its argument, other results are replicated. Stored values, moved versions and arguments
 * use memory over their lives.
 *
 * The search begins from the plan as it is, too: where that keeps to these rules, nothing worse comes out.
 *
 * Reductions of gradients go on beside the backward pass; they count for the part of their time that is
 * `exposed` (0 to 1), which differs from value to value: behind the last ones nothing is left to compute.
 */
#ifndef SF_SEARCH_AXIS_AXIS_H
#define SF_SEARCH_AXIS_AXIS_H

#include "base/thread_pool.h"
#include "plan/pin_rules.h"
#include "search/axis/axis_space.h"
#include "search/price/node_work.h"

/* What moves cost, kept from one search to the next on the same graph, mesh and costs. Zeroed, it is
 * empty; one search at a time. */
typedef struct sf_axis_cache {
    sf_arena arena;
    struct axis_moved **moved;
} sf_axis_cache;
void sf_axis_cache_free(sf_axis_cache *cache);

/* What is exposed is counted in such parts. */
enum { SF_EXPOSED_ALL = 20, SF_EXPOSED_UNKNOWN = 255 };

typedef struct sf_axis_options {
    int axis;
    double exposed;               /* of values of which nothing else is known */
    const uint8_t *value_exposed; /* by value: so many parts, or SF_EXPOSED_UNKNOWN; or NULL */
    int64_t memory;               /* most bytes of a rank, 0: no limit */
    bool folded;                  /* repeated layers choose the same */
    /* Budget of the solver, see sheaf/solve.h. What solve/start.h finds is always there; 0: that alone, and a
     * weak bound. */
    int64_t work;
    double gap;           /* to the bound that will do, as a share of the cost */
    sf_threads *threads;  /* or NULL */
    sf_axis_cache *cache; /* or NULL */
    /* What is fixed along the axis (plan/pin_rules.h). A value that is made and fixed is found so by all readers
     * that can have it so; where none can, it is made so. A split of period 0 is contiguous. */
    sf_fixed fixed;
} sf_axis_options;

typedef struct sf_axis_result {
    bool feasible;  /* within the memory; else the plan is as before */
    double seconds; /* of the objective */
    double bound;   /* nothing along this axis, the others fixed, costs less */
    double over;    /* not feasible: bytes over the limit */
    int64_t memory; /* feasible, and there is a limit: the most that was counted at any time */
    uint32_t variables, edges;
} sf_axis_result;

/* The problem of an axis, to be solved within several limits. Options, but for what they point to, are copied; a guess of
 * what is large, and so has choices of its own in memory, is made by the limit of the options, where there is one. Without one
 * there is none later. For sf_axis_problem_free, which takes NULL. */
typedef struct sf_axis_problem sf_axis_problem;
sf_status sf_axis_problem_new(const sf_efforts *efforts, const sf_axis_space *space,
                              const sf_classes *classes, const sf_costs *costs,
                              const sf_axis_options *options, sf_plan *plan, sf_diag *diag,
                              sf_axis_problem **out);
void sf_axis_problem_free(sf_axis_problem *problem);

/* Sets the layouts of the plan along the axis. Along the others it must be as the one that the problem was made of. */
sf_status sf_axis_problem_solve(sf_axis_problem *problem, int64_t memory, sf_plan *plan,
                                sf_axis_result *out);

/* All of it at once, within the limit of the options. */
sf_status sf_axis_solve(const sf_efforts *efforts, const sf_axis_space *space,
                        const sf_classes *classes, const sf_costs *costs,
                        const sf_axis_options *options, sf_plan *plan, sf_diag *diag,
                        sf_axis_result *out);

#endif
