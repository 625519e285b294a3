/* The named schedules. Each is an order of the same tasks, on its own hosts:
 *
 *     name            stages, p ranks      hosts of stage s          order
 *     gpipe           p                    group s                   all forward, then all backward
 *     1f1b            p                    group s                   forward and backward
 *                     alternate, p - 1 - s forward ahead
 *     interleaved:V   V p                  group s mod p             the same by chunks of V, as
 *                     Megatron does
 *     zb-h1           p                    group s                   1f1b, W where there would be a
 *                     gap; memory as 1f1b
 *     zb-v            2 p                  down the ranks and up     the same without a gap where
 *                     F, B and W take the same
 *     chimera         p                    s, or p - 1 - s           even micro-batches go down the
 *                     ranks, odd ones up
 *     dualpipe        p                    as chimera                the same with W apart, and one
 *                     micro-batch more in flight
 *     3f1b:V          V p                  group s mod p             passes of recycling: only the
 *                     last has a backward pass
 *     interlaced      p, and shared ones   group s; shared: all      1f1b, with stages on all
 *                     groups between the others
 *     search:V        V p                  group s mod p             the result of the search
 *
 * The first five have closed forms; so has the middle of 3f1b (nnScaler, table 7). The others give
 * the hosts, the limit of micro-batches in flight and their order; the search of
 * plan/pipeline/order_tasks.h completes it, for stages of one size with a backward pass twice as
 * long as the forward pass. For stages that differ, sf_arrange with their costs is better: it takes
 * the hosts of such a schedule, and the schedule as a first solution; the pipeline of a step has
 * interlaced and search:V by the costs of its stages (plan/pipeline/pipeline.h). */
#ifndef SF_PLAN_PIPELINE_SCHEDULES_H
#define SF_PLAN_PIPELINE_SCHEDULES_H

#include "plan/pipeline/schedule.h"

typedef enum sf_schedule_name {
    SF_SCHEDULE_GPIPE,
    SF_SCHEDULE_1F1B,
    SF_SCHEDULE_INTERLEAVED,
    SF_SCHEDULE_ZB_H1,
    SF_SCHEDULE_ZB_V,
    SF_SCHEDULE_CHIMERA,
    SF_SCHEDULE_DUALPIPE,
    SF_SCHEDULE_3F1B,
    SF_SCHEDULE_INTERLACED,
    SF_SCHEDULE_SEARCH,
} sf_schedule_name;

typedef struct sf_schedule_kind {
    sf_schedule_name name;
    uint32_t chunks; /* stages a group; of 3f1b, forward passes */
} sf_schedule_kind;

/* Whether the chunks of a pipeline rank are forward passes through the same layers, which are then
 * cut alike. */
typedef enum sf_recycles {
    SF_RECYCLES_NEVER,
    SF_RECYCLES_IF_IT_CAN, /* where the step has as many passes */
    SF_RECYCLES_ALWAYS,
} sf_recycles;

/* A row of the table of schedules. */
typedef struct sf_schedule_info {
    const char *name;
    const char *count;      /* the name may be followed by ":COUNT"; NULL: not */
    uint32_t chunks, least; /* stages per pipeline rank: the default, and the minimum */
    uint32_t shared;        /* stages on all groups besides: as a rule the first and the last */
    uint32_t least_turns;   /* it needs so many micro-batches, */
    uint32_t worth_turns;   /* and with fewer than these does no better than 1f1b */
    bool whole_rounds;      /* micro-batches must be a multiple of groups */
    bool splits_weights;    /* W is a task of its own */
    /* its order follows from the times of tasks, which are not known everywhere: plans keep it
     * as a table */
    bool goes_by_times;
    bool falls_to_one; /* micro-batches in flight fall from group to group, to one */
    sf_recycles recycles;
} sf_schedule_info;

const sf_schedule_info *sf_schedule_get(sf_schedule_name name);

/* Of "interleaved:2"; NULL where there is no such schedule. */
const sf_schedule_info *sf_schedule_find_info(const char *text);

/* Reads "1f1b", "interleaved:2". SF_EUSAGE where there is no such schedule, with a list of those that there are. */
sf_status sf_schedule_parse(const char *text, sf_schedule_kind *out, sf_diag *diag);

/* How many stages it wants of a step on so many groups, shared ones not counted. */
uint32_t sf_schedule_stages(sf_schedule_kind kind, uint32_t ngroups);

/* Makes a schedule of a pipe that has its hosts, which may be sets of pipeline ranks, by the
 * search. `time` is the time of tasks, by stage * SF_PASSES + pass; NULL: stages are of one size,
 * and those on several pipeline ranks take half as long. `held` is the memory that a stage keeps of
 * a micro-batch; NULL: all that have a backward pass keep the same. */
sf_status sf_schedule_find(const sf_pipe *pipe, const int64_t *time, const int64_t *held,
                           sf_arena *arena, sf_schedule *out, sf_diag *diag);

/* Makes the schedule of a pipe whose hosts it sets; it also sets splits_weights if needed. Edges go
 * from lower stages to higher ones. `shared` (by stage) may be NULL: no stage, or for interlaced
 * the first and the last one. SF_EUSAGE, with a remedy, if the numbers of stages, pipeline ranks or
 * micro-batches do not suit it. */
sf_status sf_schedule_make(sf_schedule_kind kind, const sf_pipe *pipe, const bool *shared,
                           sf_arena *arena, sf_schedule *out, sf_diag *diag);

#endif
