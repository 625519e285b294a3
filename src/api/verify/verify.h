/* Common to the two ways to verify a step: against known results, and split against unsplit. */
#ifndef SF_API_VERIFY_H
#define SF_API_VERIFY_H

#include "local/local.h"
#include "plan/plan.h"
#include "sheaf/eval.h"

/* A report with its memory. */
typedef struct sf_owned_report {
    sf_verify_report report; /* first: sf_verify_free takes it */
    sf_arena arena;
} sf_owned_report;

/* Makes room for the results of a report, and returns them as one array. */
sf_difference *sf_report_results(sf_owned_report *out, uint32_t count);

/* Sets `passed`; SF_EMISMATCH with a message when a result or a loss is past its tolerance. */
sf_status sf_judge(sf_verify_report *report, sf_diag *diag);

/* A run of sf_verify_plan, with hooks for tests. */
typedef struct sf_plan_trial {
    const sf_graph
        *reference; /* runs unsplit; its arguments and results have the types of the other's */
    const sf_graph *graph;
    const sf_plan *plan;
    /* Or NULL: changes the graph of a rank, as a bug would. */
    void (*spoil)(void *context, sf_local *local, int rank);
    void *context;
} sf_plan_trial;

sf_status sf_verify_trial(const sf_plan_trial *trial, const sf_verify_options *options,
                          sf_diag *diag, sf_verify_report **out);

#endif
