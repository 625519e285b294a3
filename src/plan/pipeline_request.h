/* A pipeline as a specification asks for it: so many stages, or scopes that begin them, and a schedule by name or table. */
#ifndef SF_PLAN_PIPELINE_REQUEST_H
#define SF_PLAN_PIPELINE_REQUEST_H

#include "plan/pipeline/pipeline.h"
#include "plan/pipeline/stage_cut.h"
#include "plan/spec.h"

/* By these stages are cut where the specification does not say where they begin. */
typedef struct sf_pipeline_costs {
    const double *time;     /* by node: what it takes, in any unit; NULL: by its operations */
    const bool *recomputed; /* by node: it is recomputed; NULL: none is */
    const sf_stage_request *loads; /* beside that, what stages can take: speed, memory; NULL: any */
} sf_pipeline_costs;

/* Of the specification: stages, which are said; the schedule, NULL: 1f1b; and micro-batches, 0: those of the table. In the
 * arena. The axis is left to the caller. SF_EUSAGE, with what to do, where this cannot be. */
sf_status sf_pipeline_by(const sf_graph *graph, const sf_spec *spec, const sf_pipeline_costs *costs,
                         sf_arena *arena, sf_diag *diag, sf_pipeline *out);

/* How many micro-batches it has, 1 or more. */
uint32_t sf_pipeline_micro_batches(const sf_spec *spec);

#endif
