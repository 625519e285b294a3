/* The passes that a plan names, on the programs of its ranks. */
#ifndef SF_PASS_PLAN_PASSES_H
#define SF_PASS_PLAN_PASSES_H

#include "pass/pass.h"
#include "plan/plan.h"

/* The cluster whose costs the passes of the plan go by: that which it names for them, or as many cores as it has ranks. */
sf_status sf_plan_passes_cluster(const sf_plan *plan, sf_diag *diag, sf_cluster **out);

/* Whether a pass of the plan makes its training another one, near that of the step. */
bool sf_plan_is_approximate(const sf_plan *plan);

/* Rewrites the program as the plan says. Passes go by the costs of the cluster that the plan names for them; where it names
 * none, by `costs`, of its mesh, or, for NULL, those of as many cores as it has ranks. *outcomes, with that of no pass
 * first, and the number of them, or NULL; in the arena. A plan without passes: nothing is done, and there are none. */
sf_status sf_plan_rewrite(const sf_plan *plan, const sf_costs *costs, sf_program *program,
                          sf_arena *arena, sf_diag *diag, sf_pass_outcome **outcomes, int *count);

/* Names the passes of the plan, "" or "none" for none, and the cluster whose costs they go by: NULL: cores of a machine. SF_EUSAGE
 * where there is no such pass. */
sf_status sf_plan_name_passes(sf_plan *plan, const char *names, const sf_cluster *cluster,
                              int64_t memory, sf_diag *diag);

#endif
