/* A reader that fails says why, and one that succeeds may warn but not complain. */
#ifndef FUZZ_OUTCOME_H
#define FUZZ_OUTCOME_H

#include "base/diag.h"

static inline int fuzz_failures(const sf_diag *diag)
{
    int failures = 0;
    for (int i = 0; i < diag->count && i < SF_DIAG_KEPT; i++)
        failures += diag->messages[i].status != SF_OK;
    return failures;
}

static inline void fuzz_check_outcome(sf_status status, const sf_diag *diag)
{
    SF_ASSERT((status == SF_OK) == (fuzz_failures(diag) == 0));
}

#endif
