/* Compute that a plan does not split: every rank along an axis does all of it. Along the axis of a pipeline nothing is. */
#ifndef SF_PLAN_REPLICATED_COMPUTE_H
#define SF_PLAN_REPLICATED_COMPUTE_H

#include "plan/plan.h"

typedef struct sf_repeated {
    double once; /* operations of the step on one device */
    double done; /* by all ranks together */
    double
        share; /* of what is done, what is done again: 0 where all is split, 1 - 1 / ranks where nothing is */
    /* The same without what an update does to single elements: where state stands whole, ranks do that alike. */
    double avoidable;
    char most[160]; /* the name of the node that adds most to it; "": there is none */
    double of_most; /* its part of the share */
} sf_repeated;

/* Loops count as often as they turn, with what is split inside (plan/region_plan.h). */ sf_repeated
sf_find_repeated(const sf_graph *graph, const sf_plan *plan);

/* Beyond this share a plan is not what its user wants: he is warned. */
#define SF_REPEATED_MUCH 0.1

/* A warning where much is repeated, with the op that most of it comes from. */
void sf_warn_repeated(const sf_graph *graph, const sf_plan *plan, sf_diag *diag);

#endif
