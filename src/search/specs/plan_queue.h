/* The search for a plan, over plan specifications.
 *
 * WHAT IS SEARCHED. A choice (search/specs/choice.h) is a mesh whose axes have roles, and a value for everything else that a
 * specification may say: state, recompute, stages, schedule, micro-batches, co-shard, passes. What a person fixed, no choice says
 * otherwise.
 *
 * THE QUEUE has choices whose cost is estimated (search/specs/judge.h). It begins with recipes on meshes that the topology suggests.
 * The first of the queue is expanded: each move makes another choice of it, whose cost is estimated. A choice that does not fit has
 * the key seconds * memory / limit, so that what nearly fits comes before what does not by far; else the key is its seconds. The
 * search ends when the first `width` of the queue are expanded: no move helps any of them; or at the end of the budget, in
 * estimates.
 *
 * THE JUDGE is the simulated program: choices that may fit are simulated in the order of their estimated seconds, until the best that
 * fits is faster than the estimates of all that follow, or as many nodes were simulated as for the estimates. Between a choice
 * that does not fit and the same with more recomputed, which does, lies one that recomputes as much as it must: layers are equal,
 * so its cost is on the line between the two.
 *
 * WHAT IS LOST. Layouts are those of recipes. Moves that help only together are found only where each alone keeps the choice among
 * the first of the queue. Estimates of pipelines and of passes are not exact: what they make look too slow is not simulated.
 * Parameters are not sharded inside of pipelines. */
#ifndef SF_SEARCH_SPECS_PLAN_QUEUE_H
#define SF_SEARCH_SPECS_PLAN_QUEUE_H

#include "base/thread_pool.h"
#include "search/specs/judge.h"
#include "sheaf/event.h"

typedef struct sf_queue_options {
    const sf_cluster *cluster;
    const sf_target *target;
    const sf_choice_rules *rules; /* what a person fixed */
    int64_t memory;               /* of a rank; 0: what its device has */
    double known;      /* seconds of a plan that is known, and to be beaten; 0: none is */
    int width, budget; /* estimates */
    double deadline;   /* of sf_now: stop then, as when the interrupt is raised; 0: none */
    const sf_interrupt *interrupt; /* or NULL */
    sf_threads *threads;
} sf_queue_options;

typedef struct sf_queue_found {
    sf_plan *plan; /* for sf_plan_free; NULL: nothing fits, and is faster than what is known */
    sf_price price;
    sf_choice choice;
    double kept; /* see sf_judge_simulate */
    int estimates, simulated;
} sf_queue_found;

sf_status sf_search_queue(const sf_graph *graph, const sf_queue_options *options,
                          sf_queue_found *out);

#endif
