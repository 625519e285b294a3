/* Orders: pairs of tasks of stages, completed by the search. */
#include <inttypes.h>
#include <string.h>

#include "plan/pipeline/order_tasks.h"
#include "plan/pipeline/schedules.h"
#include "plan/pipeline/stage_costs.h"
#include "plan/space/space_builder.h"

typedef struct pairs {
    sf_stage_task (*at)[2];
    size_t count, capacity;
} pairs;

/* Stages of the ops of a task, in the round that it is of. */
typedef struct stage_list {
    uint32_t *at;
    size_t count, capacity;
} stage_list;

/* The how-many-eth of the stages of its label this one is, from 1 on. */
static int round_of(const making *m, uint32_t stage)
{
    int round = 0;
    for (uint32_t s = 0; s <= stage; s++)
        round += m->label[s] == m->label[stage];
    return round;
}

static size_t number_of_name(const making *m, const char *ops)
{
    size_t number = 0;
    while (strcmp(m->names[number], ops) != 0)
        number++;
    return m->space->nassigns + number;
}

static const char *show_ops(const char *ops)
{
    return *ops ? ops : "all ops";
}

static sf_status find_task(const making *m, const sf_pipe *pipe, const sf_task *task,
                           stage_list *out)
{
    size_t name = number_of_name(m, task->ops);
    bool placed = false, in_round = false;
    *out = (stage_list){0};
    for (uint32_t s = 0; s < m->nstages; s++) {
        if (m->label[s] == SF_NONE || !space_is_of(m, m->label[s], name))
            continue;
        placed = true;
        if (task->round != 0 && round_of(m, s) != task->round)
            continue;
        in_round = true;
        if (sf_pipe_has(pipe, s, task->pass))
            SF_PUSH(m->arena, out->at, out->count, out->capacity, s);
    }
    if (task->microbatch != SF_EVERY && (uint32_t)task->microbatch >= m->nmicrobatches)
        return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                       "order: there is no micro-batch %d of %s: there are %" PRIu32,
                       task->microbatch, show_ops(task->ops), m->nmicrobatches);
    if (out->count > 0)
        return SF_OK;
    if (!placed)
        return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                       "order: %s is made wherever it is read, so there is no order of it",
                       show_ops(task->ops));
    if (!in_round)
        return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                       "order: no forward pass goes through %s for the %dth time",
                       show_ops(task->ops), task->round);
    return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE, "order: %s has no %s pass there",
                   show_ops(task->ops), task->pass == SF_PASS_WEIGHTS ? "weights" : "backward");
}

/* All pairs of stages of the two, in the two micro-batches. */
static sf_status add_pairs(const making *m, const stage_list *a, sf_stage_task first,
                           const stage_list *b, sf_stage_task second, pairs *out)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++) {
            if (out->count >= SF_MOST_TASKS)
                return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                               "order: there are more than %d pairs of tasks", SF_MOST_TASKS);
            if (out->count == out->capacity)
                out->at =
                    sf_arena_grow(m->arena, out->at, out->count, &out->capacity, sizeof *out->at);
            first.stage = a->at[i];
            second.stage = b->at[j];
            out->at[out->count][0] = first;
            out->at[out->count++][1] = second;
        }
    return SF_OK;
}

static sf_status expand(const making *m, const sf_pipe *pipe, const sf_said_order *said, pairs *out)
{
    stage_list a, b;
    SF_TRY(find_task(m, pipe, &said->before, &a));
    SF_TRY(find_task(m, pipe, &said->after, &b));
    bool both = said->before.microbatch == SF_EVERY && said->after.microbatch == SF_EVERY;
    for (uint32_t t = 0; t < m->nmicrobatches; t++)
        for (uint32_t u = 0; u < m->nmicrobatches; u++) {
            bool first =
                said->before.microbatch == SF_EVERY || (uint32_t)said->before.microbatch == t;
            bool second =
                said->after.microbatch == SF_EVERY || (uint32_t)said->after.microbatch == u;
            if (first && second && (!both || t == u))
                SF_TRY(add_pairs(m, &a, (sf_stage_task){0, t, said->before.pass}, &b,
                                 (sf_stage_task){0, u, said->after.pass}, out));
        }
    return SF_OK;
}

/* Names of stages in messages: the first name of an order, or of an assignment, that they are
 * of. */
static const char *const *name_stages(const making *m)
{
    const char **names = SF_ARRAY(m->arena, m->nstages, const char *);
    for (uint32_t s = 0; s < m->nstages; s++) {
        for (size_t i = 0; i < m->nnames && !names[s] && m->label[s] != SF_NONE; i++)
            if (*m->names[i] && space_is_of(m, m->label[s], m->space->nassigns + i))
                names[s] = m->names[i];
        for (size_t i = 0; i < m->space->nassigns && !names[s] && m->label[s] != SF_NONE; i++)
            if (space_is_of(m, m->label[s], i))
                names[s] = m->space->assigns[i].ops;
    }
    return names;
}

/* Memory for as many micro-batches as there are pipeline ranks, which 1f1b takes; more if orders
 * need it; at last any. */
static sf_status arrange(const making *m, const sf_pipe *pipe, sf_pipe_costs *costs,
                         const sf_arrange_options *options, sf_arranged *out)
{
    int64_t *limits = SF_ARRAY(m->arena, pipe->ngroups, int64_t);
    for (uint32_t microbatches = pipe->ngroups; microbatches < 2 * pipe->nmicrobatches;
         microbatches *= 2) {
        memset(limits, 0, pipe->ngroups * sizeof *limits);
        for (uint32_t s = 0; s < pipe->nstages; s++)
            for (uint32_t g = 0; g < pipe->ngroups; g++)
                if (sf_pipe_hosts(pipe, s, 0) >> g & 1)
                    limits[g] +=
                        costs->held[s] *
                        (microbatches < pipe->nmicrobatches ? microbatches : pipe->nmicrobatches);
        costs->limits = limits;
        sf_status status = sf_arrange(pipe, costs, options, m->arena, out, NULL);
        if (status == SF_EINPUT)
            break;
        if (status != SF_EMISMATCH)
            return status;
    }
    costs->limits = NULL;
    return sf_arrange(pipe, costs, options, m->arena, out, m->diag);
}

static bool asks_for_weights(const sf_space *space)
{
    for (size_t i = 0; i < space->norders; i++)
        if (space->orders[i].before.pass == SF_PASS_WEIGHTS ||
            space->orders[i].after.pass == SF_PASS_WEIGHTS)
            return true;
    return false;
}

static sf_status search_order(making *m, const sf_stages *stages, sf_pipe *pipe, sf_schedule *out)
{
    pairs fixed = {0};
    sf_arranged arranged;
    pipe->splits_weights = asks_for_weights(m->space);
    SF_TRY(sf_pipe_check(pipe, m->diag));
    for (size_t i = 0; i < m->space->norders; i++)
        SF_TRY(expand(m, pipe, &m->space->orders[i], &fixed));
    sf_pipe_costs costs = sf_costs_of_stages(m->space->graph, stages, pipe,
                                             sf_times_by_ops(m->space->graph, m->arena), m->arena);
    sf_arrange_options options = {.nfixed = (uint32_t)fixed.count,
                                  .fixed = (const sf_stage_task(*)[2])fixed.at,
                                  .holders_first = true,
                                  .names = name_stages(m)};
    sf_status status = arrange(m, pipe, &costs, &options, &arranged);
    *out = arranged.schedule;
    return status == SF_EINPUT ? SF_EUSAGE : status;
}

/* By name or table, which must place stages where they were assigned to. */
static sf_status take_schedule(const making *m, const sf_pipe *pipe, sf_schedule *out)
{
    sf_schedule_kind kind;
    if (m->space->norders > 0)
        return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                       "orders are completed by a search: a schedule cannot be given as well");
    if (m->spec->table) {
        *out = *m->spec->table;
    } else {
        SF_TRY(sf_schedule_parse(m->spec->schedule, &kind, m->diag));
        SF_TRY(sf_schedule_make(kind, pipe, NULL, m->arena, out, m->diag));
    }
    if (out->pipe.nstages != pipe->nstages || out->pipe.nmicrobatches != pipe->nmicrobatches)
        return SF_OK; /* sf_pipeline_make refuses it */
    for (uint32_t s = 0; s < pipe->nstages; s++)
        for (uint32_t t = 0; t < pipe->nmicrobatches; t++)
            if (sf_pipe_hosts(&out->pipe, s, t) != sf_pipe_hosts(pipe, s, t))
                return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                               "the schedule has stage %" PRIu32 " in micro-batch %" PRIu32
                               " on other devices than it was assigned to",
                               s, t);
    return SF_OK;
}

sf_status space_find_order(making *m)
{
    sf_stages stages;
    sf_pipe pipe;
    sf_schedule schedule;
    const sf_graph *graph = m->space->graph;
    uint64_t *hosts = SF_ARRAY(m->arena, (size_t)m->nstages * m->nmicrobatches, uint64_t);
    SF_TRY(sf_stages_complete(graph, m->nstages, m->forward, m->arena, m->diag, &stages));
    sf_pipe_of_stages(graph, &stages, m->nmicrobatches, m->ngroups, m->arena, &pipe);
    for (size_t i = 0; i < (size_t)m->nstages * m->nmicrobatches; i++)
        hosts[i] = m->sets[m->set_of[i]].groups;
    pipe.hosts = hosts;
    bool given = m->spec->schedule || m->spec->table;
    SF_TRY(given ? take_schedule(m, &pipe, &schedule) : search_order(m, &stages, &pipe, &schedule));
    sf_schedule_choice choice = {.table = &schedule};
    if (given && !m->spec->table)
        choice.name = m->spec->schedule;
    return sf_pipeline_make(graph, m->nstages, m->forward, m->ngroups, m->nmicrobatches, &choice,
                            m->arena, m->diag, &m->pipeline);
}
