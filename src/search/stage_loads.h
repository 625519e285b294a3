/* What the stages of a pipeline can take: how fast the devices of their groups are and what these have room for, against what
 * the schedule keeps under way.
 */
#ifndef SF_SEARCH_STAGE_LOADS_H
#define SF_SEARCH_STAGE_LOADS_H

#include "plan/pipeline/pipeline_request.h"
#include "plan/plan.h"
#include "search/price/node_work.h"

/* By group, how much faster its devices are than the slowest of the mesh, at what the plan gives them: 1 or more. Groups
 * stand along axis 0. In the arena. */
double *sf_group_speeds(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                        int groups, sf_arena *arena);

/* By node of the step, the seconds that it takes in the plan. */
double *sf_node_times(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                      sf_arena *arena);

/* Seconds of the kernels of a step in turns, without stages: those of one turn, by what they are for, and those that run
 * once. */
typedef struct sf_turn_work {
    uint32_t microbatches;
    double forward, backward;
    double weights; /* of the backward pass, what only the update waits for */
    double once;
} sf_turn_work;

/* Adds to each of them, which have their turns, what the plan gives a rank. */
void sf_add_turn_work(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                      size_t count, sf_turn_work *work);

typedef struct sf_load_request {
    const sf_efforts *efforts;
    const sf_plan *plan; /* without stages, on a mesh with groups along axis 0 */
    const sf_costs *costs;
    const char *schedule;
    uint32_t stages, groups, microbatches;
    const double *speeds; /* by group */
    bool limited;         /* stages are to fit, by what is counted, */
    int64_t memory;       /* in this for every rank; 0: in its device, */
    const bool *
        recomputed; /* by node: it is computed again, and not kept for the backward pass; NULL: none is */
} sf_load_request;

/* By node, bytes of a turn that the backward pass reads, and a rank keeps for it. In the arena. */
double *sf_kept_by_nodes(const sf_load_request *request, sf_arena *arena);

/* The most turns of a stage that a group has begun and not ended; of stages with several groups, on the one that has most. */
uint32_t sf_turns_in_flight(const sf_schedule *schedule, uint32_t stage);

/* For sf_pipeline_request. In the arena. SF_EUSAGE where the schedule does not suit the numbers. */
sf_status sf_stage_loads(const sf_load_request *request, sf_arena *arena, sf_diag *diag,
                         sf_stage_request *out);

#endif
