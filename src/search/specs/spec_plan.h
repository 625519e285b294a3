/* The plan of a specification (sheaf/spec.h): what it does not say has defaults, and tensors that it does not pin follow by sharding
 * propagation. */
#ifndef SF_SEARCH_SPECS_SPEC_PLAN_H
#define SF_SEARCH_SPECS_SPEC_PLAN_H

#include "cluster/cluster.h"
#include "plan/plan.h"
#include "sheaf/spec.h"

/* Stages are cut by `time`, by node; NULL: by operations. Passes go by the costs of the cluster; NULL: of a machine's cores. *out is
 * for sf_plan_free. SF_EUSAGE for what no plan has, SF_EMISMATCH for a recipe that does not apply to the step. */
sf_status sf_plan_of_spec(const sf_graph *graph, const sf_plan_spec *said, const double *time,
                          const sf_cluster *cluster, sf_diag *diag, sf_plan **out);

#endif
