#include <stdlib.h>

#include "plan/pipeline/order_tasks.h"
#include "plan/pipeline/schedule_builder.h"

/* The task, if there is one, at the end of the list of a group. */
static void add(sf_scheduling *s, uint32_t group, uint32_t stage, uint32_t microbatch, sf_pass pass)
{
    if (microbatch < s->pipe.nmicrobatches && sf_pipe_has(&s->pipe, stage, pass))
        s->out->tasks[group][s->out->ntasks[group]++] = (sf_stage_task){stage, microbatch, pass};
}

static void add_backward(sf_scheduling *s, uint32_t group, uint32_t stage, uint32_t microbatch)
{
    add(s, group, stage, microbatch, SF_PASS_BACKWARD);
    add(s, group, stage, microbatch, SF_PASS_WEIGHTS);
}

/* Hosts */

uint64_t sf_host_round(const sf_scheduling *s, uint32_t stage, uint32_t microbatch)
{
    (void)microbatch;
    return UINT64_C(1) << stage % s->pipe.ngroups;
}

uint64_t sf_host_down_and_up(const sf_scheduling *s, uint32_t stage, uint32_t microbatch)
{
    (void)microbatch;
    return UINT64_C(1) << (stage < s->pipe.ngroups ? stage : 2 * s->pipe.ngroups - 1 - stage);
}

uint64_t sf_host_both_ways(const sf_scheduling *s, uint32_t stage, uint32_t microbatch)
{
    return UINT64_C(1) << (microbatch % 2 == 0 ? stage : s->pipe.ngroups - 1 - stage);
}

uint64_t sf_host_shared(const sf_scheduling *s, uint32_t stage, uint32_t microbatch)
{
    (void)microbatch;
    uint32_t group = 0;
    if (s->shared[stage])
        return UINT64_MAX >> (64 - s->pipe.ngroups);
    for (uint32_t before = 0; before < stage; before++)
        group += !s->shared[before];
    return UINT64_C(1) << group;
}

/* Orders in closed form */

sf_status sf_order_gpipe(sf_scheduling *s)
{
    for (uint32_t g = 0; g < s->pipe.ngroups; g++) {
        for (uint32_t i = 0; i < s->pipe.nmicrobatches; i++)
            add(s, g, g, i, SF_PASS_FORWARD);
        for (uint32_t i = 0; i < s->pipe.nmicrobatches; i++)
            add_backward(s, g, g, i);
    }
    return SF_OK;
}

/* The kth of the passes of a pipeline rank with several stages: p micro-batches of one chunk, then
 * of the next; backward passes begin with the last chunk (Narayanan et al., 2021, section 2.2). */
static void add_nth(sf_scheduling *s, uint32_t group, uint32_t k, bool backward)
{
    uint32_t p = s->pipe.ngroups, v = s->chunks;
    uint32_t chunk = k % (p * v) / p, microbatch = k / (p * v) * p + k % p;
    if (backward)
        add_backward(s, group, (v - 1 - chunk) * p + group, microbatch);
    else
        add(s, group, chunk * p + group, microbatch, SF_PASS_FORWARD);
}

sf_status sf_order_interleaved(sf_scheduling *s)
{
    uint32_t p = s->pipe.ngroups, v = s->chunks, total = s->pipe.nmicrobatches * v;
    for (uint32_t g = 0; g < p; g++) {
        uint32_t ahead = v == 1 ? p - 1 - g : 2 * (p - 1 - g) + (v - 1) * p;
        ahead = ahead < total ? ahead : total;
        for (uint32_t k = 0; k < ahead; k++)
            add_nth(s, g, k, false);
        for (uint32_t k = ahead; k < total; k++) {
            add_nth(s, g, k, false);
            add_nth(s, g, k - ahead, true);
        }
        for (uint32_t k = total - ahead; k < total; k++)
            add_nth(s, g, k, true);
    }
    return SF_OK;
}

/* 1f1b, with W of pipeline rank g delayed by g micro-batches: there it fills the time until the
 * next B comes, and no pipeline rank holds more than p micro-batches, which the first one holds in
 * any case (Qi et al., 2024, section 2.3). */
sf_status sf_order_zb_h1(sf_scheduling *s)
{
    uint32_t p = s->pipe.ngroups, m = s->pipe.nmicrobatches;
    for (uint32_t g = 0; g < p; g++) {
        uint32_t ahead = p - 1 - g < m ? p - 1 - g : m;
        for (uint32_t i = 0; i < ahead; i++)
            add(s, g, g, i, SF_PASS_FORWARD);
        for (uint32_t i = 0; i < m; i++) {
            add(s, g, g, i + ahead, SF_PASS_FORWARD);
            add(s, g, g, i, SF_PASS_BACKWARD);
            if (i >= g)
                add(s, g, g, i - g, SF_PASS_WEIGHTS);
        }
        for (uint32_t i = g < m ? m - g : 0; i < m; i++)
            add(s, g, g, i, SF_PASS_WEIGHTS);
    }
    return SF_OK;
}

/* The two stages of a pipeline rank go down the ranks and up again, and alternate (Qi et al., 2024,
 * Pipeline parallelism with controllable memory, section 3.2). Made for 2 p - 1 micro-batches or
 * more; for fewer, missing ones are left out. */
static void add_v_group(sf_scheduling *s, uint32_t g)
{
    uint32_t p = s->pipe.ngroups, down = g, up = 2 * p - 1 - g;
    uint32_t m = s->pipe.nmicrobatches < 2 * p - 1 ? 2 * p - 1 : s->pipe.nmicrobatches;
    uint32_t fd = 0, fu = 0, bd = 0, bu = 0;
    for (uint32_t i = 0; i < 2 * (p - g) - 1; i++)
        add(s, g, down, fd++, SF_PASS_FORWARD);
    for (uint32_t i = 0; i < g; i++) {
        add(s, g, up, fu++, SF_PASS_FORWARD);
        add(s, g, down, fd++, SF_PASS_FORWARD);
    }
    for (uint32_t i = 0; i < p - g; i++) {
        add(s, g, up, fu++, SF_PASS_FORWARD);
        add_backward(s, g, up, bu++);
    }
    while (fu < fd || fd < m) {
        if (fd < m)
            add(s, g, down, fd++, SF_PASS_FORWARD);
        add_backward(s, g, down, bd++);
        add(s, g, up, fu++, SF_PASS_FORWARD);
        add_backward(s, g, up, bu++);
    }
    uint32_t wd = bd, wu = bu;
    for (uint32_t i = 0; i < g; i++) {
        add(s, g, down, bd++, SF_PASS_BACKWARD);
        add(s, g, up, bu++, SF_PASS_BACKWARD);
    }
    for (uint32_t i = 0; i < p - g; i++) {
        add(s, g, down, bd++, SF_PASS_BACKWARD);
        add(s, g, down, wd++, SF_PASS_WEIGHTS);
    }
    while (wu < bu)
        add(s, g, up, wu++, SF_PASS_WEIGHTS);
    while (wd < bd)
        add(s, g, down, wd++, SF_PASS_WEIGHTS);
}

sf_status sf_order_zb_v(sf_scheduling *s)
{
    for (uint32_t g = 0; g < s->pipe.ngroups; g++)
        add_v_group(s, g);
    return SF_OK;
}

/* Orders that are found */

/* A forward pass lasts a unit, and so does each half of a backward pass; of a shared stage half of
 * that. Of several forward passes, the backward passes of all but the last take no time. */
static const int64_t *unit_times(const sf_pipe *pipe, bool passes, sf_arena *arena)
{
    int64_t *time = SF_ARRAY(arena, pipe->nstages * SF_PASSES, int64_t);
    for (uint32_t stage = 0; stage < pipe->nstages; stage++) {
        int64_t unit = sf_is_several(sf_pipe_hosts(pipe, stage, 0)) ? 1 : 2;
        bool early = passes && stage + pipe->ngroups < pipe->nstages;
        time[stage * SF_PASSES + SF_PASS_FORWARD] = unit;
        time[stage * SF_PASSES + SF_PASS_BACKWARD] = early                  ? 0
                                                     : pipe->splits_weights ? unit
                                                                            : 2 * unit;
        time[stage * SF_PASSES + SF_PASS_WEIGHTS] = unit;
    }
    return time;
}

/* The memory that a stage keeps of a micro-batch until its backward pass. Stages on several
 * pipeline ranks count as none, and so do forward passes with nearly no backward pass: in a `known`
 * order of several, all but the last. */
static int64_t *find_held(const sf_pipe *pipe, const int64_t *of_stage, const sf_schedule *known,
                          sf_arena *arena)
{
    int64_t *held = SF_ARRAY(arena, pipe->nstages, int64_t);
    for (uint32_t stage = 0; stage < pipe->nstages; stage++) {
        bool shared = sf_is_several(sf_pipe_hosts(pipe, stage, 0));
        bool early = known && stage + pipe->ngroups < pipe->nstages;
        if (!shared && !early && pipe->has_backward[stage])
            held[stage] = of_stage && of_stage[stage] > 0 ? of_stage[stage] : 1;
    }
    return held;
}

/* How many micro-batches of a stage a pipeline rank may hold, if it holds no more than 1f1b does:
 * as many as there are pipeline ranks, or, if other stages of it follow, as many as if each stage
 * had a pipeline rank to itself. If stages on several pipeline ranks make each micro-batch wait for
 * all of these, twice as many. */
static uint32_t most_turns(const sf_pipe *pipe, uint32_t stage, bool any_shared)
{
    uint32_t after = pipe->nstages - stage;
    if (any_shared)
        return 2 * pipe->ngroups;
    return after > pipe->ngroups ? after : pipe->ngroups;
}

/* One micro-batch more if they go both ways with W apart. */
static int64_t *find_limits(const sf_pipe *pipe, const int64_t *held, sf_arena *arena)
{
    int64_t *limits = SF_ARRAY(arena, pipe->ngroups, int64_t), most = 0;
    bool any_shared = false;
    for (uint32_t stage = 0; stage < pipe->nstages; stage++) {
        any_shared = any_shared || sf_is_several(sf_pipe_hosts(pipe, stage, 0));
        most = held[stage] > most ? held[stage] : most;
    }
    for (uint32_t microbatch = 0; microbatch < pipe->nmicrobatches; microbatch++) {
        int64_t of_microbatch[SF_MOST_GROUPS] = {0};
        for (uint32_t stage = 0; stage < pipe->nstages; stage++)
            of_microbatch[__builtin_ctzll(sf_pipe_hosts(pipe, stage, microbatch))] +=
                held[stage] * most_turns(pipe, stage, any_shared);
        for (uint32_t g = 0; g < pipe->ngroups; g++)
            limits[g] = of_microbatch[g] > limits[g] ? of_microbatch[g] : limits[g];
    }
    for (uint32_t g = 0; g < pipe->ngroups; g++)
        limits[g] += pipe->splits_weights ? most : 0;
    return limits;
}

/* `known`: an order of several forward passes. */
static sf_status find_order(const sf_pipe *pipe, const int64_t *time, const int64_t *of_stage,
                            const sf_schedule *known, sf_arena *arena, sf_schedule *out,
                            sf_diag *diag)
{
    const int64_t *held = find_held(pipe, of_stage, known, arena);
    sf_pipe_costs costs = {.time = time ? time : unit_times(pipe, known != NULL, arena),
                           .held = held,
                           .late = held,
                           .limits = find_limits(pipe, held, arena)};
    sf_arrange_options options = {.known = known};
    sf_arranged arranged;
    SF_TRY(sf_arrange(pipe, &costs, &options, arena, &arranged, diag));
    *out = arranged.schedule;
    return SF_OK;
}

sf_status sf_schedule_find(const sf_pipe *pipe, const int64_t *time, const int64_t *held,
                           sf_arena *arena, sf_schedule *out, sf_diag *diag)
{
    return find_order(pipe, time, held, NULL, arena, out, diag);
}

sf_status sf_order_found(sf_scheduling *s)
{
    return find_order(&s->pipe, NULL, NULL, NULL, s->arena, s->out, s->diag);
}

/* Several forward passes, of which the last has a backward pass (nnScaler, table 7). Time is cut
 * into periods, in which a pipeline rank runs one task of each kind: the first pass of micro-batch
 * k, the second of k - d, ..., the last of k - (v-1) d, and the backward pass of k - (v-1) d -
 * (p-1-g): pipeline rank g begins a period a unit after g - 1, and so has a backward pass in the
 * period after the one in which g + 1 had it. With a backward pass of two units, a period has v +
 * 2; a forward pass reaches the last pipeline rank p - 1 units after the first, which d
 * compensates. With v = 1 it is 1f1b. The middle has no gap; the ends, which this leaves loose, are
 * found by the search. */
typedef struct slotted {
    uint32_t period, slot;
    sf_stage_task task;
} slotted;

static int by_slot(const void *a, const void *b)
{
    const slotted *x = a, *y = b;
    if (x->period != y->period)
        return x->period < y->period ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static uint32_t parts_of(uint32_t count, uint32_t size)
{
    return (count + size - 1) / size;
}

/* When pipeline rank `group` runs the pass of a stage in a micro-batch. The backward pass of
 * earlier passes, such as that of the inputs of all of them, comes when the micro-batch is back at
 * the first pipeline rank, from the last stage to the first. */
static slotted slot_of(const sf_scheduling *s, uint32_t group, sf_stage_task task)
{
    uint32_t p = s->pipe.ngroups, v = s->chunks, length = v + 2;
    uint32_t apart = p > 1 ? parts_of(p - 1, length) : 1, last = task.microbatch + (v - 1) * apart;
    uint32_t round = task.stage / p;
    if (task.pass == SF_PASS_FORWARD)
        return (slotted){task.microbatch + round * apart, round, task};
    bool early = round + 1 < v;
    return (slotted){last + p - 1 - (early ? 0 : group),
                     early ? v + s->pipe.nstages - task.stage : v, task};
}

sf_status sf_order_recycled(sf_scheduling *s)
{
    uint32_t p = s->pipe.ngroups, m = s->pipe.nmicrobatches;
    for (uint32_t g = 0; g < p; g++) {
        slotted *slots = SF_ARRAY(s->arena, 2 * s->chunks * m, slotted);
        uint32_t count = 0;
        for (uint32_t stage = g; stage < s->pipe.nstages; stage += p)
            for (uint32_t i = 0; i < m; i++)
                for (sf_pass pass = SF_PASS_FORWARD; pass <= SF_PASS_BACKWARD; pass++)
                    if (sf_pipe_has(&s->pipe, stage, pass))
                        slots[count++] = slot_of(s, g, (sf_stage_task){stage, i, pass});
        qsort(slots, count, sizeof *slots, by_slot);
        for (uint32_t i = 0; i < count; i++)
            add(s, g, slots[i].task.stage, slots[i].task.microbatch, slots[i].task.pass);
    }
    sf_schedule middle = *s->out;
    middle.pipe = s->pipe;
    return find_order(&s->pipe, NULL, NULL, &middle, s->arena, s->out, s->diag);
}
