/* Schedules: the order in which pipeline ranks run the tasks of a pipeline.
 *
 * A step is cut into *stages*, and its batch into *micro-batches*. A *task* is one pass of one
 * stage in one micro-batch: forward (F), backward (B), or, if the gradients of inputs and of
 * weights are computed apart, weights (W; then B is the gradient of inputs alone). A *pipeline
 * rank* (group) is the devices that work together at one position of the pipeline; each has its
 * list of tasks, and runs them in that order, with no coordinator. A stage may be hosted by several
 * pipeline ranks, by one in some micro-batches and by another in others; a task that several of
 * them host is one task that all of them run together.
 *
 * The dependencies of a task:
 *
 *     F(s, i)   F(r, i) of each edge r -> s
 *     B(s, i)   F(s, i), and B(t, i) of each edge s -> t, where t has a backward pass
 *     W(s, i)   B(s, i)
 *
 * A schedule is data: another order is another table. Named ones are in plan/pipeline/schedules.h.
 *
 * The text form has a line for each pipeline rank, its tasks from left to right, and edges if
 * stages are no chain:
 *
 *     # 1f1b, 2 stages, 3 micro-batches
 *     0: F0.0 F0.1 B0.0 F0.2 B0.1 B0.2
 *     1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2
 *     edges: 0>1
 *
 * Everything points into the arena that it was made with. */
#ifndef SF_PLAN_PIPELINE_SCHEDULE_H
#define SF_PLAN_PIPELINE_SCHEDULE_H

#include "base/diag.h"
#include "base/str.h"
#include "sheaf/space.h"
#include "solve/order/order.h"

enum { SF_MOST_GROUPS = SF_MOST_MACHINES, SF_MOST_TASKS = 1 << 20 };

enum { SF_PASSES = 3 };

typedef struct sf_stage_task {
    uint32_t stage, microbatch;
    sf_pass pass;
} sf_stage_task;

typedef struct sf_stage_edge {
    uint32_t from, to;
} sf_stage_edge;

/* At least one stage, micro-batch and pipeline rank; at most SF_MOST_GROUPS pipeline ranks,
 * SF_MOST_TASKS tasks, and as many pairs of an edge and a micro-batch. */
typedef struct sf_pipe {
    uint32_t nstages, nmicrobatches, ngroups;
    bool splits_weights;
    const bool *has_backward; /* by stage */
    uint32_t nedges;          /* in the direction of the forward pass */
    const sf_stage_edge *edges;
    /* by stage * nturns + micro-batch: the pipeline ranks that run it, a bit each, at least one */
    const uint64_t *hosts;
} sf_pipe;

typedef struct sf_schedule {
    sf_pipe pipe;
    uint32_t *ntasks;      /* by group */
    sf_stage_task **tasks; /* by group, in order */
} sf_schedule;

static inline bool sf_pipe_has(const sf_pipe *pipe, uint32_t stage, sf_pass pass)
{
    return pass == SF_PASS_FORWARD ||
           (pipe->has_backward[stage] && (pass == SF_PASS_BACKWARD || pipe->splits_weights));
}

/* Whether a set of groups has more than one. */
static inline bool sf_is_several(uint64_t groups)
{
    return (groups & (groups - 1)) != 0;
}

static inline uint64_t sf_all_groups(uint32_t ngroups)
{
    return ngroups >= 64 ? UINT64_MAX : (UINT64_C(1) << ngroups) - 1;
}

static inline uint64_t sf_pipe_hosts(const sf_pipe *pipe, uint32_t stage, uint32_t microbatch)
{
    return pipe->hosts[(size_t)stage * pipe->nmicrobatches + microbatch];
}

/* All have a backward pass, in a chain: edges of a step without branches, for who has nothing better. */
const bool *sf_pipe_all_backward(uint32_t nstages, sf_arena *arena);
const sf_stage_edge *sf_pipe_chain(uint32_t nstages, sf_arena *arena);

/* Costs of tasks. Any array may be NULL: 0, and no limits. */
typedef struct sf_pipe_costs {
    const int64_t *time; /* by stage * SF_PASSES + pass */
    const int64_t *
        ahead; /* by edge: how long the result of a forward pass is on its way, between different hosts */
    const int64_t *back; /* by edge: the same of the backward pass */
    const int64_t *
        held; /* by stage: memory that the forward pass takes on each host, and the backward pass gives back */
    const int64_t *late; /* by stage: so much of it is given back by W only, where that is apart */
    const int64_t *limits; /* by group */
} sf_pipe_costs;

/* The tasks of a pipe, as jobs for solve/order: micro-batch by micro-batch, in each stage by stage,
 * F B W. A stage without backward pass holds its memory while it runs. */
typedef struct sf_pipe_jobs {
    sf_jobs jobs;
    uint32_t nkinds;      /* tasks of a micro-batch; job = micro-batch * nkinds + kind */
    uint32_t *kind;       /* by stage * SF_PASSES + pass; UINT32_MAX: there is none */
    sf_stage_task *tasks; /* by job */
} sf_pipe_jobs;

/* `costs` may be NULL. The caller can add `more` waits: there is room for them after the others,
 * and they count once sf_jobs_index is called. */
void sf_pipe_make_jobs(const sf_pipe *pipe, const sf_pipe_costs *costs, uint32_t more,
                       sf_arena *arena, sf_pipe_jobs *out);

static inline uint32_t sf_job_of(const sf_pipe_jobs *jobs, sf_stage_task task)
{
    return task.microbatch * jobs->nkinds + jobs->kind[task.stage * SF_PASSES + task.pass];
}

/* To queues and back; the schedule is one that sf_schedule_check found right. */
sf_queues sf_schedule_queues(const sf_schedule *schedule, const sf_pipe_jobs *jobs,
                             sf_arena *arena);
void sf_schedule_of_queues(const sf_pipe *pipe, const sf_pipe_jobs *jobs, const sf_queues *queues,
                           sf_arena *arena, sf_schedule *out);

/* Numbers, edges and hosts are as said above. SF_EINPUT or SF_EUNSUPPORTED otherwise. */
sf_status sf_pipe_check(const sf_pipe *pipe, sf_diag *diag);

/* The above, and: every task is once on each of its hosts and nowhere else, and no task waits for
 * itself by way of others, for data or for its place in a list. SF_EINPUT otherwise, with the tasks
 * named. */
sf_status sf_schedule_check(const sf_schedule *schedule, sf_diag *diag);

/* The times of a schedule that passed sf_schedule_check; times are by job. */
void sf_schedule_time(const sf_schedule *schedule, const sf_pipe_costs *costs, sf_arena *arena,
                      sf_pipe_jobs *jobs, sf_times *times);

/* How long it takes where what a pipeline rank sends goes one after the other: sf_queues_time_with_ports. */
int64_t sf_schedule_rehearse(const sf_schedule *schedule, const sf_pipe_costs *costs,
                             sf_arena *arena);

/* Text */

#define SF_PASS_LETTERS "FBW"                              /* by sf_pass */
void sf_stage_task_name(sf_stage_task task, char out[32]); /* "F1.0" */

void sf_schedule_write(const sf_schedule *schedule, sf_buf *out);

/* Reads any text. It has the stages, micro-batches and pipeline ranks that the text names; stages
 * have a backward pass if it has one, and without a line of edges are a chain. It has passed
 * sf_schedule_check. */
sf_status sf_schedule_read(sf_str text, const char *file, sf_arena *arena, sf_schedule *out,
                           sf_diag *diag);

#endif
