/* The pipeline of a plan: which part of the step the groups of devices run, and in which order.
 *
 * Groups stand along one axis of the plan's mesh, and split their parts of the step over the other axes, as the layouts of
 * the plan say. A stage is on one group, or on a set of them that run it together: then the layouts of its nodes may split
 * along the axis, too, over the groups of the set (sf_share.on; of all groups, nothing is said). Along the axis, all other
 * nodes are replicated: whoever has what they make has all of it. State stands in the groups of its stage: in the plan, its
 * layout has the share At(group) along the axis, or is split over the set.
 */
#ifndef SF_PLAN_PIPELINE_PIPELINE_H
#define SF_PLAN_PIPELINE_PIPELINE_H

#include "plan/pipeline/schedule.h"
#include "plan/pipeline/stage.h"

/* What the axis of groups is called. */
#define SF_PIPE_AXIS "pipe"

typedef struct sf_pipeline {
    int axis; /* of the mesh; its size is the number of groups */
    sf_stages stages;
    sf_schedule schedule;
    const char *name; /* of the schedule, "1f1b"; "" where it is a table */
} sf_pipeline;

sf_pipeline *sf_pipeline_copy(const sf_pipeline *pipeline, const sf_graph *graph, sf_arena *arena);

/* What the stages need of each other in a turn, as a pipe without hosts: edges, and which have a backward pass. */
void sf_pipe_of_stages(const sf_graph *graph, const sf_stages *stages, uint32_t nmicrobatches,
                       uint32_t ngroups, sf_arena *arena, sf_pipe *out);

/* The groups that hold an argument, a bit each: those that run its stage in turn 0. 0: each has it. */
uint64_t sf_pipeline_holders(const sf_pipeline *pipeline, const sf_graph *graph, uint32_t argument);

/* The sets of several groups that run stages together, each once, in the order of stages. `out` has room for as many as there
 * are stages; returns how many there are. */
uint32_t sf_pipeline_sets(const sf_pipeline *pipeline, uint64_t *out);

/* The groups that run the stage of a node, in turn 0. */
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
    const double
        *time; /* by node: what it takes, for orders that are found; NULL: by its operations */
    const bool *recomputed; /* by node: it is computed again; NULL: none is */
} sf_schedule_choice;

/* Makes the pipeline of a graph: `forward` says the stages of the nodes of its forward pass (plan/pipeline/stage.h). In the arena.
 * SF_EUSAGE where the schedule does not suit the stages, turns or groups. */
sf_status sf_pipeline_make(const sf_graph *graph, uint32_t nstages, const uint32_t *forward,
                           uint32_t ngroups, uint32_t nmicrobatches,
                           const sf_schedule_choice *choice, sf_arena *arena, sf_diag *diag,
                           sf_pipeline *out);

#endif
