/* A pipeline as a person asks for it: so many stages, or scopes that begin them, and a schedule by name or table. */
#ifndef SF_PLAN_PIPELINE_PIPELINE_REQUEST_H
#define SF_PLAN_PIPELINE_PIPELINE_REQUEST_H

#include "plan/pipeline/pipeline.h"
#include "plan/pipeline/stage_cut.h"

typedef struct sf_pipeline_request {
    /* "4"; the scopes that begin all but the first stage, "layer_3,layer_6"; or with the groups that each stage is on,
     * "@0-1,layer_3@2", or without scopes, "@0-1,@2". */
    const char *stages;
    const char *schedule;     /* a name; NULL: 1f1b */
    const sf_schedule *table; /* or NULL; then `schedule` says nothing */
    uint32_t microbatches;    /* micro-batches; 0, 1: one */
    const double *time;       /* by node: what it takes, in any unit; NULL: by its operations */
    const bool *recomputed;   /* by node: it is computed again; NULL: none is */
    const sf_stage_request *loads; /* beside that, what stages can take: speed, memory; NULL: any */
} sf_pipeline_request;

/* In the arena. The axis is left to the caller. SF_EUSAGE, with what to do, where the wish cannot be. */
sf_status sf_pipeline_by(const sf_graph *graph, const sf_pipeline_request *request, sf_arena *arena,
                         sf_diag *diag, sf_pipeline *out);

#endif
