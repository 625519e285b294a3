/* Within plan/: how the named schedules fill their lists of tasks. Names and numbers are in
 * schedules.c, their orders in schedules_order.c. */
#ifndef SF_PLAN_PIPELINE_SCHEDULE_BUILDER_H
#define SF_PLAN_PIPELINE_SCHEDULE_BUILDER_H

#include "plan/pipeline/schedules.h"

typedef struct sf_scheduling {
    sf_pipe pipe;
    const bool *shared; /* by stage: on all groups; NULL: none */
    uint32_t chunks;    /* stages a group */
    sf_schedule *out;   /* lists with room for all tasks of each group */
    sf_arena *arena;
    sf_diag *diag;
} sf_scheduling;

/* The pipeline ranks that host a stage in a micro-batch. */
uint64_t sf_host_round(const sf_scheduling *s, uint32_t stage, uint32_t microbatch);
uint64_t sf_host_down_and_up(const sf_scheduling *s, uint32_t stage, uint32_t microbatch);
uint64_t sf_host_both_ways(const sf_scheduling *s, uint32_t stage, uint32_t microbatch);
uint64_t sf_host_shared(const sf_scheduling *s, uint32_t stage, uint32_t microbatch);

/* Fill the lists; hosts are set. */
sf_status sf_order_gpipe(sf_scheduling *s);
sf_status sf_order_interleaved(sf_scheduling *s); /* with one chunk, 1f1b */
sf_status sf_order_zb_h1(sf_scheduling *s);
sf_status sf_order_zb_v(sf_scheduling *s);
sf_status sf_order_recycled(sf_scheduling *s); /* chunks are forward passes */
sf_status sf_order_found(sf_scheduling *s);    /* by the search, for stages of one size */

#endif
