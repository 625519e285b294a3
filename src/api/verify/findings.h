/* What ranks have found, put together. */
#ifndef SF_API_FINDINGS_H
#define SF_API_FINDINGS_H

#include "run/comm/comm.h"
#include "sheaf/eval.h"

/* An error and what is allowed. */
typedef struct sf_finding {
    double error, tolerance;
} sf_finding;

bool sf_finding_is_worse(sf_finding a, sf_finding b);

/* The worst of `count` losses. Runs that go their own ways differ more from step to step: what is allowed is `plain`, or
 * SF_LOSS_NOISE_FACTOR times the largest spread, relative, of the steps so far. */
sf_finding sf_worst_loss(int count, const double *losses, const double *expected,
                         const double *noise, double plain);

/* Each rank brings what is worst of each result, and of the losses; `report`, of whoever leads in its process, gets
 * what is worst of all, of equals on the first rank. The others have NULL. */
sf_status sf_findings_share(sf_comm *comm, uint32_t count, const sf_difference *mine,
                            sf_finding loss, sf_arena *scratch, sf_diag *diag,
                            sf_verify_report *report);

/* The worse of two; but counts of elements, and whether bits differ, are of both. */
void sf_keep_worse(sf_difference *worst, const sf_difference *next);

#endif
