/* A pipeline by the specification: a number of stages, or scopes that begin them, and a schedule by
 * name or table. */
#ifndef SF_PLAN_PIPELINE_REQUEST_H
#define SF_PLAN_PIPELINE_REQUEST_H

#include "plan/pipeline/pipeline.h"
#include "plan/pipeline/stage_cut.h"
#include "plan/spec.h"

/* By these stages are cut where the specification does not say where they begin. */
typedef struct sf_pipeline_costs {
    const double *time;     /* by node: its time, in any unit; NULL: by its operations */
    const bool *recomputed; /* by node: it is recomputed; NULL: none is */
    /* beside that, the capacity of stages: speed, memory; NULL: any */
    const sf_stage_request *loads;
} sf_pipeline_costs;

/* From the specification: stages, which must be given; the schedule, NULL: 1f1b; and micro-batches,
 * 0: those of the table. In the arena. The axis is left to the caller. SF_EUSAGE, with a remedy, if
 * this is impossible. */
sf_status sf_pipeline_by(const sf_graph *graph, const sf_spec *spec, const sf_pipeline_costs *costs,
                         sf_arena *arena, sf_diag *diag, sf_pipeline *out);

/* How many micro-batches it has, 1 or more. */
uint32_t sf_pipeline_micro_batches(const sf_spec *spec);

#endif
