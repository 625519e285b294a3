/* The search for a plan: over meshes, recipes and, on each mesh, layouts.
 *
 * Stages, each of which goes on from the best of those before it:
 *
 *  1. Every recipe, and what is known beside them (plan/known.h), on every mesh that it suits: completed and
 *     priced.
 *  2. One axis of all devices, solved (plan/refine.h), at level 3 for several guesses of what is exposed;
 *     the best guess goes on.
 *  3. Two axes, on meshes that respect the topology (plan/meshes.h): from nothing, from the best
 *     known plan, and from the best of one axis, which is a plan of two axes as well when its axis is cut.
 *  4. At level 3, three axes, from the best of two.
 *
 * All are priced alike, so the answer is never slower than a recipe that fits, by that price. The jobs of a
 * stage run on the threads; which plan wins does not depend on how many there are, unless a deadline
 * passes. With a mesh of the user there are stages 1 and 2 on that mesh.
 */
#ifndef SF_PLAN_SEARCH_H
#define SF_PLAN_SEARCH_H

#include "plan/refine.h"

typedef struct sf_search_options {
    const sf_cluster *cluster;
    const sf_mesh *mesh; /* the only one to try, or NULL */
    int npins;
    const char *const *pins; /* their axes are those of the mesh */
    int64_t memory;          /* most bytes of a rank */
    int level;               /* 2: fewer meshes and guesses, folded; 3 */
    double seconds;          /* stop refining then; 0: no limit */
    bool recipes_only;
    sf_threads *threads;
    void (*progress)(void *context, const char *text); /* on the calling thread; or NULL */
    void *context;
} sf_search_options;

typedef struct sf_candidate {
    const char *name; /* of what is known, or "search" */
    const char *mesh; /* "data=2,model=4" */
    int naxes;
    sf_priced at; /* the plan is there for the first SF_FINALISTS alone */
} sf_candidate;

enum { SF_FINALISTS = 4 };

typedef struct sf_found {
    sf_arena arena;
    size_t count;
    sf_candidate *candidates; /* the best first: sf_priced_better, and, as good
                                 as that, fewer axes */
    double bound;             /* no plan on these devices takes less */
} sf_found;

/* *out is for sf_found_free, also after a failure. SF_EUSAGE when the mesh has not as many devices as the
 * cluster, or a pin is wrong. */
sf_status sf_search_plans(const sf_graph *graph, const sf_search_options *options, sf_diag *diag,
                          sf_found *out);
void sf_found_free(sf_found *found);

/* The time of all kernels when each is cut into as many equal parts as there are devices, and nothing is
 * sent: `costs` is of a mesh of all of them. */
double sf_search_bound(const sf_efforts *efforts, const sf_costs *costs, int devices);

#endif
