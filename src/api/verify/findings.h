/* The findings of ranks, combined. */
#ifndef SF_API_FINDINGS_H
#define SF_API_FINDINGS_H

#include "run/comm/comm.h"
#include "sheaf/eval.h"

/* An error and its tolerance. */
typedef struct sf_finding {
    double error, tolerance;
} sf_finding;

bool sf_finding_is_worse(sf_finding a, sf_finding b);

/* The worst of `count` losses. Runs diverge from step to step: the tolerance is `plain`, or
 * SF_LOSS_NOISE_FACTOR times the largest relative deviation of the steps so far. */
sf_finding sf_worst_loss(int count, const double *losses, const double *expected,
                         const double *noise, double plain);

/* Each rank has the worst of each result, and of the losses; `report`, of the leader of its
 * process, gets the worst of all, of equals on the first rank. The others have NULL. */
sf_status sf_findings_share(sf_comm *comm, uint32_t count, const sf_difference *mine,
                            sf_finding loss, sf_arena *scratch, sf_diag *diag,
                            sf_verify_report *report);

/* The worse of two; but counts of elements, and whether bits differ, are of both. */
void sf_keep_worse(sf_difference *worst, const sf_difference *next);

#endif
