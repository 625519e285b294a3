/* A good order for a pipe, where nobody named one: the search of solve/order, for the costs that the stages have.
 *
 * The turns of a stage come in order, on the same hosts and in the same pass: they do the same, so to change two of them gains
 * nothing; unless that would contradict what the caller fixes. All else is free.
 */
#ifndef SF_PLAN_PIPELINE_ORDER_TASKS_H
#define SF_PLAN_PIPELINE_ORDER_TASKS_H

#include "plan/pipeline/schedule.h"
#include "solve/order/order_search.h"

typedef struct sf_arrange_options {
    const sf_schedule *known; /* of the same pipe: the result is no worse; NULL: none */
    uint64_t work;            /* as of sf_order_options */
    uint32_t
        nfixed; /* what must stand in this order: pairs of tasks, the first before the second */
    const sf_stage_task (*fixed)[2];
    bool
        holders_first; /* a stage is begun by the group that holds its state, before others have it in other turns */
    const char *const *names; /* by stage, for messages; NULL: numbers are enough */
} sf_arrange_options;

/* What is known of the result. */
typedef struct sf_arranged {
    sf_schedule schedule;
    sf_pipe_jobs jobs;
    sf_times times;
    int64_t bound; /* nothing takes less */
    bool proven;   /* this takes the least */
} sf_arranged;

/* SF_EINPUT where what is fixed goes in a circle, with the tasks on it; and where it holds for tasks of different groups only by
 * chance, because no data and no list would make the second wait for the first. SF_EMISMATCH where nothing was found that keeps to costs->limits. */
sf_status sf_arrange(const sf_pipe *pipe, const sf_pipe_costs *costs,
                     const sf_arrange_options *options, sf_arena *arena, sf_arranged *out,
                     sf_diag *diag);

#endif
