/* A smaller step that a plan can be tried on.
 *
 * Every dimension of the step becomes as small as it can be such that the step is still made of the
 * same ops, and that the plan, with the periods of its splits scaled along, still splits it. A
 * dimension whose size determines an op's meaning (slices of a part of it, padding, windows,
 * concatenation), or in loops and branches, keeps its size. The number of nodes stays, and so do
 * constants such as the number that a mean divides by: the smaller step computes something else,
 * but in the same way. */
#ifndef SF_PLAN_SHRINK_H
#define SF_PLAN_SHRINK_H

#include "plan/plan.h"

/* *out shares the pool of `graph`, and *about, a line on the reduced dimensions, lives in it. */
sf_status sf_shrink(const sf_graph *graph, const sf_plan *plan, sf_diag *diag, sf_graph **out,
                    sf_plan **out_plan, const char **about);

#endif
