/* What one rank runs: its local graph, lowered. */
#ifndef SF_LOCAL_RANK_H
#define SF_LOCAL_RANK_H

#include "local/local.h"
#include "prog/program.h"

/* The program of a rank of the plan, for the target. Where `local` is not NULL, it becomes what the program was
 * lowered from. SF_EINPUT as sf_local_new. */
sf_status sf_rank_lower(const sf_graph *graph, const sf_plan *plan, int rank,
                        const sf_target *target, sf_diag *diag, sf_local **local, sf_program **out);

/* Bytes of memory that the first rank takes. */
sf_status sf_rank_bytes(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                        sf_diag *diag, int64_t *out);

#endif
