/* The named schedules. Each is an order of the same tasks, with hosts that it asks for:
 *
 *     name            stages of p groups   hosts of stage s          order
 *     gpipe           p                    group s                   all forward, then all backward
 *     1f1b            p                    group s                   forward and backward in turn, p - 1 - s forward ahead
 *     interleaved:V   V p                  group s mod p             the same by chunks of V, as Megatron does
 *     zb-h1           p                    group s                   1f1b, W where there would be a gap; memory as 1f1b
 *     zb-v            2 p                  down the groups and up    the same without a gap where F, B and W take the same
 *     chimera         p                    s, or p - 1 - s           even turns go down the groups, odd ones up
 *     dualpipe        p                    as chimera                the same with W apart, and one turn more in flight
 *     3f1b:V          V p                  group s mod p             passes of recycling: only the last has a backward pass
 *     interlaced      p, and shared ones   group s; shared: all      1f1b, with stages on all groups between the others
 *     search:V        V p                  group s mod p             whatever the search finds
 *
 * The first five have closed forms; so has the middle of 3f1b (nnScaler, table 7). Of the others the hosts, what may be in flight and the order of turns are given, and the
 * search of plan/pipeline/order_tasks.h completes that, for stages of one size with a backward pass twice as long as the forward pass. For
 * stages that differ, sf_arrange with what they take is better: on the hosts of a schedule that was made, with that as what is
 * known; the pipeline of a step has interlaced and search:V by what its stages take (plan/pipeline/pipeline.h).
 */
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

/* Whether the chunks of a group are forward passes through the same layers, which are then cut alike. */
typedef enum sf_recycles {
    SF_RECYCLES_NEVER,
    SF_RECYCLES_IF_IT_CAN, /* where the step has as many passes */
    SF_RECYCLES_ALWAYS,
} sf_recycles;

/* What a schedule is. */
typedef struct sf_schedule_info {
    const char *name;
    const char *count;      /* ":COUNT" may stand after the name; NULL: not */
    uint32_t chunks, least; /* stages a group: as a rule, and the fewest that may be asked for */
    uint32_t shared;        /* stages on all groups besides: as a rule the first and the last */
    uint32_t least_turns;   /* it needs so many micro-batches, */
    uint32_t worth_turns;   /* and with fewer than these does no better than 1f1b */
    bool whole_rounds;      /* micro-batches must be a multiple of groups */
    bool splits_weights;    /* W is a task of its own */
    bool goes_by_times; /* its order follows from what tasks take, which is not known everywhere:
                                   plans keep it as a table */
    bool falls_to_one;  /* micro-batches in flight fall from group to group, to one */
    sf_recycles recycles;
} sf_schedule_info;

const sf_schedule_info *sf_schedule_get(sf_schedule_name name);

/* Of "interleaved:2"; NULL where there is no such schedule. */
const sf_schedule_info *sf_schedule_find_info(const char *text);

/* Reads "1f1b", "interleaved:2". SF_EUSAGE where there is no such schedule, with a list of those that there are. */
sf_status sf_schedule_parse(const char *text, sf_schedule_kind *out, sf_diag *diag);

/* One by itself, as it is read. */
void sf_schedule_kind_text(sf_schedule_kind kind, char out[32]);

/* How many stages it wants of a step on so many groups, shared ones not counted. */
uint32_t sf_schedule_stages(sf_schedule_kind kind, uint32_t ngroups);

/* Makes a schedule of a pipe that has its hosts, which may be sets of groups, by the search. `time` is what tasks take, by
 * stage * SF_PASSES + pass; NULL: stages are of one size, and those on several groups take half as long. `held` is what a stage keeps
 * of a turn; NULL: all that have a backward pass keep the same. */
sf_status sf_schedule_find(const sf_pipe *pipe, const int64_t *time, const int64_t *held,
                           sf_arena *arena, sf_schedule *out, sf_diag *diag);

/* Makes the schedule of a pipe whose hosts it sets; it also sets splits_weights where it needs that. Edges go from lower
 * stages to higher ones. `shared` (by stage) may be NULL: no stage, or for interlaced the first and the last one.
 * SF_EUSAGE, with what to do, where the numbers of stages, groups or turns do not suit it. */
sf_status sf_schedule_make(sf_schedule_kind kind, const sf_pipe *pipe, const bool *shared,
                           sf_arena *arena, sf_schedule *out, sf_diag *diag);

#endif
