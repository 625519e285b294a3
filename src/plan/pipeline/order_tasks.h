/* A good order of a pipeline's tasks, if the user named no schedule: the search of solve/order, for
 * the costs of the stages.
 *
 * The micro-batches of a stage come in order, on the same hosts and in the same pass: they are
 * equal, so swapping two of them gains nothing; unless that would contradict the caller's fixed
 * orders. All else is free. */
#ifndef SF_PLAN_PIPELINE_ORDER_TASKS_H
#define SF_PLAN_PIPELINE_ORDER_TASKS_H

#include "plan/pipeline/schedule.h"
#include "solve/order/order_search.h"

typedef struct sf_arrange_options {
    const sf_schedule *known; /* of the same pipe: the result is no worse; NULL: none */
    uint64_t work;            /* as of sf_order_options */
    uint32_t nfixed;          /* fixed orders: pairs of tasks, the first before the second */
    const sf_stage_task (*fixed)[2];
    /* a stage is begun by the pipeline rank that holds its state, before others run it in other
     * micro-batches */
    bool holders_first;
    const char *const *names; /* by stage, for messages; NULL: numbers are enough */
} sf_arrange_options;

/* Facts about the result. */
typedef struct sf_arranged {
    sf_schedule schedule;
    sf_pipe_jobs jobs;
    sf_times times;
    int64_t bound; /* nothing takes less */
    bool proven;   /* this takes the least */
} sf_arranged;

/* SF_EINPUT if fixed orders form a cycle, with the tasks on it; and if one holds for tasks of
 * different pipeline ranks only by chance, because neither data nor a list makes the second wait
 * for the first. SF_EMISMATCH if no order within costs->limits was found. */
sf_status sf_arrange(const sf_pipe *pipe, const sf_pipe_costs *costs,
                     const sf_arrange_options *options, sf_arena *arena, sf_arranged *out,
                     sf_diag *diag);

#endif
