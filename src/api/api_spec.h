/* Plan specifications as callers hand them in. */
#ifndef SF_API_API_SPEC_H
#define SF_API_API_SPEC_H

#include "plan/spec.h"

/* Copies a caller's, or zeros for NULL. SF_EUSAGE where it has fields that we do not know, or numbers that are negative. */
sf_status sf_spec_take(const sf_plan_spec *theirs, sf_diag *diag, sf_plan_spec *ours);

/* Gives a plan that was made the kernels and passes of the specification; `passes`, or NULL, where it says none. The cluster, or
 * NULL, is that whose costs passes go by. */
sf_status sf_spec_finish(const sf_spec *spec, const char *passes, const sf_cluster *cluster,
                         sf_diag *diag, sf_plan *plan);

#endif
