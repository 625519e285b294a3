/* Checks that ranks, each of which rewrites its own program, came to the same result. */
#ifndef SF_PASS_AGREE_PASSES_H
#define SF_PASS_AGREE_PASSES_H

#include "pass/plan_passes.h"
#include "run/comm/comm.h"

/* As sf_plan_rewrite, on all ranks of `comm`, NULL for one alone. Ranks whose programs sent something else, or in another
 * order, would wait for each other: SF_EMISMATCH on all of them. */
sf_status sf_rewrite_together(const sf_plan *plan, sf_comm *comm, sf_program *program,
                              sf_diag *diag);

#endif
