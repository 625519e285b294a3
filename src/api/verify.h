/* What the two ways to verify a step share: against known results, and split against unsplit. */
#ifndef SF_API_VERIFY_H
#define SF_API_VERIFY_H

#include "plan/plan.h"
#include "sheaf/eval.h"

/* A report with its memory. */
typedef struct sf_owned_report {
    sf_verify_report report; /* first: sf_verify_free takes it */
    sf_arena arena;
} sf_owned_report;

/* Sets `passed`; SF_EWRONG with a message when a result or a loss is past its tolerance. */
sf_status sf_judge(sf_verify_report *report, double loss_tolerance, sf_diag *diag);

/* sf_verify_plan with a reference of its own, whose arguments and results have the same types. */
sf_status sf_verify_split(const sf_graph *reference, const sf_graph *graph, const sf_plan *plan,
                          const sf_verify_options *options, sf_diag *diag, sf_verify_report **out);

#endif
