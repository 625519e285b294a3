/* What a plan takes when it is lowered: the memory that decides whether it fits. */
#ifndef SF_API_LOWERED_H
#define SF_API_LOWERED_H

#include "local/local.h"

/* Bytes of a rank: arguments, constants and the arena. */
int64_t sf_lowered_bytes(const sf_local *local);

/* Those of the first rank of a plan. */
sf_status sf_plan_bytes(const sf_graph *graph, const sf_plan *plan, sf_diag *diag, int64_t *out);

#endif
