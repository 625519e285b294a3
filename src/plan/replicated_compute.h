/* Compute that a plan does not split: every rank along an axis does all of it. Along the axis of a pipeline nothing is. */
#ifndef SF_PLAN_REPLICATED_COMPUTE_H
#define SF_PLAN_REPLICATED_COMPUTE_H

#include "plan/plan.h"

typedef struct sf_repeated {
    double once; /* operations of the step on one device */
    double done; /* by all ranks together */
    /* the share of the work that is replicated: 0 if all is split, 1 - 1 / ranks if nothing is */
    double share;
    /* The same without elementwise updates: on whole state, all ranks compute these alike. */
    double avoidable;
    char most[160]; /* the name of the node that adds most to it; "": there is none */
    double of_most; /* its part of the share */
} sf_repeated;

/* Loops count with their trip count, with the splits inside (plan/region_plan.h). */
sf_repeated sf_find_repeated(const sf_graph *graph, const sf_plan *plan);

/* Whether it is an axis of devices that are left over: it is called unused, and nothing is split along it. */
bool sf_plan_idles(const sf_graph *graph, const sf_plan *plan, int axis);

/* Above this share, the user is warned. */
#define SF_REPEATED_MUCH 0.1

/* A warning where much is repeated, with the op that most of it comes from. */
void sf_warn_repeated(const sf_graph *graph, const sf_plan *plan, sf_diag *diag);

#endif
