/* The search for a plan: over meshes, recipes and, on each mesh, layouts.
 *
 * Stages, each of which goes on from the best of those before it:
 *
 *  1. Every recipe (search/known.h) on every mesh that it suits: completed and priced.
 *  2. The same where devices stand in groups that do the same (search/meshes.h), from the most groups on. Where that
 *     makes recipes faster, stages 3 to 6 are gone through for such a group, too, or, where it makes them much
 *     faster, for that alone.
 *  3. What recipes can be combined to.
 *  4. One axis of all devices, solved (search/refine.h), from the best known plan and from nothing.
 *  5. Two axes, on meshes that respect the topology: from the best known plan on each if it is promising, and
 *     from the best of one axis, which is a plan of two axes as well when its axis is cut; from nothing when
 *     nothing is known to fit.
 *  6. At level 3, three axes, from the best of two.
 *  7. At level 3, where memory binds, the best plan again with every layer free to choose for itself.
 *
 * With a mesh of the user there are stages 1, 3 and 7 on that mesh, and between them all its axes are solved, from
 * nothing and from the best known plan.
 *
 * All are priced alike, so the answer is never slower than a recipe that fits, by that price. But prices are
 * not exact, and a recipe is a plan that people know: one that the search made must be faster by a margin, and
 * one for groups that do the same, of a large step, by two percent. The jobs of a stage run on the threads; which plan wins does not
 * depend on how many there are, unless a deadline passes.
 *
 * Pins (plan/pin_rules.h) hold in every candidate; a plan that breaks one is dropped. Where pins name axes and there
 * is no mesh, those names are given to the axes of the meshes in every way, and meshes of fewer axes than
 * names are left out, as are those on which the pins cannot hold. Then it is meshes of as many axes as names that are
 * solved from nothing, and where there are three names, level 2 has three axes as well.
 */
#ifndef SF_SEARCH_SEARCH_H
#define SF_SEARCH_SEARCH_H

#include "base/listen.h"
#include "plan/spec.h"
#include "search/refine.h"
#include "sheaf/event.h"

/* Steps of so few nodes are searched for two guesses, and for longer: that takes seconds. */
enum { SF_SMALL_STEP = 5000 };

/* What was done for an answer: what it costs to find it, whatever the machine. */
typedef struct sf_search_spent {
    int programs; /* lowered and simulated, one for each group of a plan */
    int jobs;     /* of searches: plans that were priced or refined, by estimates */
    int drafts;   /* of pipelines, cut into stages */
} sf_search_spent;

typedef struct sf_search_options {
    const sf_cluster *cluster;
    const sf_target *target;   /* what ranks run on */
    const sf_efforts *efforts; /* of the step on it, where they are known; or NULL */
    const sf_mesh *mesh;       /* the only one to try, or NULL */
    int npins;
    const char *const *pins; /* without a mesh, those tried have the axes that pins name */
    int64_t memory;          /* most bytes of a rank, */
    bool limited;            /* whatever its device has; else no rank takes more than that */
    double margin;           /* share by which a searched plan must be faster than all recipes */
    int level;               /* 2: fewer axes, folded; 3 */
    double deadline;         /* of sf_now: stop refining then; 0: none */
    bool recipes_only;
    bool full_state; /* only recipes that split all state, and all of it; */
    bool between;    /* of gradients, as they like */
    bool
        on_host; /* where nothing fits, tensors may be moved to memory of the host (pass offload) */
    /* How plans go on in time (plan/recompute_policy.h): recompute, NULL: as little as is needed, or, `as_text`,
     * what the text computes again, as long as that fits; turns of the batch, 0: as few; and of what a recipe splits, NULL:
     * heads and features. */
    const char *recompute;
    bool as_text;
    int micro_batches;
    const sf_co_shard_spec *co_shard; /* that is said; NULL or empty: heads and features, so many */
    int co_shards;                    /* 0: as few; 1: none */
    int stages; /* of a pipeline (search/pipeline_search.h); 0: as many as are good, or none; 1: none */
    const sf_stages_spec
        *stage_scopes;    /* that begin all but the first of them; NULL: wherever it is good */
    const char *schedule; /* of it; NULL: any */
    const char *passes;   /* that programs of plans are priced behind; NULL: none */
    int groups;           /* that do the same are all that is looked at; 0: as many as are good */
    bool only_stages;     /* nothing but pipelines is looked at, */
    double worth; /* and only what may take less than so many seconds; 0: whatever it takes */
    bool
        impatient; /* where recipes take far more memory than there is, nothing else is looked at */
    bool spares;  /* estimates leave out what could be computed again: programs tell what must be */
    double known; /* seconds of a plan that fits, which was found before; 0: none is known */
    sf_threads *threads;
    sf_audience audience;   /* stopping the search is as if time were up */
    sf_search_spent *spent; /* or NULL: it grows by what the search does */
    const struct sf_choice_rules *
        rules; /* what a person fixed, where choices can say it (search/specs/choice.h); else NULL: they are not searched */
} sf_search_options;

typedef struct sf_candidate {
    const char *name; /* of what is known, or "search" */
    const char *mesh; /* "data=2,model=4" */
    sf_priced at;     /* an estimate; the plan is there for finalists alone */
    bool is_lowered;  /* search/finalists.h has priced it by its program: */
    sf_price lowered;
    bool is_out; /* it cannot go on in time as it is asked to */
    bool
        is_reserve; /* no finalist, but the best of a recipe: where finalists lack rows of the batch for turns */
    double handicap; /* 1 or more: it is ranked as if it took so many times its seconds and bytes */
} sf_candidate;

/* Whether the search made it; else it is known by its name. */
bool sf_candidate_is_searched(const sf_candidate *candidate);

/* Whether they are one plan, as far as estimates tell: searches that start differently end alike. */
bool sf_candidates_are_same(const sf_candidate *a, const sf_candidate *b);

/* Finalists are so many that differ, the best, and of those with more than two axes as many; of the recipes that fit the best, and those that are near the first
 * (`near`); where programs tell what must be computed again (`spares`), the best on each mesh that is not far behind; and as many that are faster than the first, and may fit although they are not expected to
 * (SF_ESTIMATE_OFF): those that exceed the least. */
enum { SF_FINALISTS = 4, SF_SMALL_FINALISTS = 24 /* of a small step, which is soon lowered */ };

typedef struct sf_found_plans {
    sf_arena arena;
    size_t count;
    sf_candidate *candidates; /* the best first: sf_priced_better, with handicaps */
    double bound;             /* no plan on these devices takes less (sim/step_bound.h) */
    bool
        has_no_room; /* of a large step, all take far more memory than there is: none is lowered to see */
    double
        near; /* of estimates of time that differ by no more than this factor either may be the faster */
} sf_found_plans;

/* *out is for sf_found_plans_free, also after a failure. SF_EUSAGE when the mesh has not as many devices as the
 * cluster, or a pin is wrong, or they hold on no mesh. */
sf_status sf_search_plans(const sf_graph *graph, const sf_search_options *options, sf_diag *diag,
                          sf_found_plans *out);
void sf_found_plans_free(sf_found_plans *found);

/* The time of all kernels of the unsharded step, shared among the devices, each whole on one of them or in pieces, and nothing is
 * sent or waited for: few plans take less, those whose loops fuse better when they are sharded. What no plan takes less than is
 * sim/step_bound.h. `costs` is of a mesh of all devices. */
double sf_least_estimate(const sf_efforts *efforts, const sf_costs *costs);

/* The same without stages: all ranks run all kernels, each cut into as many equal parts as there are devices. */
double sf_least_unstaged_estimate(const sf_efforts *efforts, const sf_costs *costs, int devices);

/* Bytes of a rank: no plan without stages and turns, of those that compute nothing again, is estimated to take less. */
double sf_memory_bound(const sf_efforts *efforts, int devices);

#endif
