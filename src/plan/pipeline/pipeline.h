/* The pipeline of a plan: the part of the step that each pipeline rank runs, and the order.
 *
 * Pipeline ranks are along one axis of the plan's mesh, and split their parts of the step over
 * the other axes, by the layouts of the plan. A stage is on one pipeline rank, or on a set of
 * them that run it together: then the layouts of its nodes may split along the axis, too, over
 * the set (sf_share.on; no set means all of them). Along the axis, all other nodes are
 * replicated: a pipeline rank that has their results has all of them. State is on the pipeline
 * ranks of its stage: in the plan, its layout has the share At(group) along the axis, or is
 * split over the set. */
#ifndef SF_PLAN_PIPELINE_PIPELINE_H
#define SF_PLAN_PIPELINE_PIPELINE_H

#include "plan/pipeline/schedule.h"
#include "plan/pipeline/stage.h"

/* The name of the axis of pipeline ranks. */
#define SF_PIPE_AXIS "pipe"

typedef struct sf_pipeline {
    int axis; /* of the mesh; its size is the number of groups */
    sf_stages stages;
    sf_schedule schedule;
    const char *name; /* of the schedule, "1f1b"; "" where it is a table */
    /* a message of so many bytes of a rank is split over axes that replicate it
     * (local/time/pipeline_deferred.c); 0: SF_BUCKET_BYTES */
    int64_t split_bytes;
} sf_pipeline;

sf_pipeline *sf_pipeline_copy(const sf_pipeline *pipeline, const sf_graph *graph, sf_arena *arena);

/* The dependencies of the stages in a micro-batch, as a pipe without hosts: edges, and which stages
 * have a backward pass. */
void sf_pipe_of_stages(const sf_graph *graph, const sf_stages *stages, uint32_t nmicrobatches,
                       uint32_t ngroups, sf_arena *arena, sf_pipe *out);

/* The pipeline ranks that hold an argument, a bit each: those that run its stage in micro-batch 0.
 * 0: all have it. */
uint64_t sf_pipeline_holders(const sf_pipeline *pipeline, const sf_graph *graph, uint32_t argument);

/* The sets of several groups that run stages together, each once, in the order of stages. `out` has room for as many as there
 * are stages; returns how many there are. */
uint32_t sf_pipeline_sets(const sf_pipeline *pipeline, uint64_t *out);

/* The pipeline ranks that run the stage of a node, in micro-batch 0. */
static inline uint64_t sf_pipeline_groups(const sf_pipeline *pipeline, uint32_t node)
{
    return sf_pipe_hosts(&pipeline->schedule.pipe, pipeline->stages.of_node[node], 0);
}

/* A schedule by its name ("1f1b"), as a table, which may have a name as well, or by the groups of each stage, for which an order
 * is found. */
typedef struct sf_schedule_choice {
    const char *name;         /* NULL: none */
    const sf_schedule *table; /* NULL: as found */
    const uint64_t *groups;   /* by stage */
    const double *time; /* by node: its time, for the search of an order; NULL: by its operations */
    const bool *recomputed; /* by node: it is recomputed; NULL: none is */
} sf_schedule_choice;

/* Makes the pipeline of a graph: `forward` gives the stages of the nodes of its forward pass
 * (plan/pipeline/stage.h). In the arena. SF_EUSAGE if the schedule does not suit the stages,
 * micro-batches or pipeline ranks. */
sf_status sf_pipeline_make(const sf_graph *graph, uint32_t nstages, const uint32_t *forward,
                           uint32_t ngroups, uint32_t nmicrobatches,
                           const sf_schedule_choice *choice, sf_arena *arena, sf_diag *diag,
                           sf_pipeline *out);

#endif
