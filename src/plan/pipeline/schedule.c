#include "plan/pipeline/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "solve/order/ports.h"

const bool *sf_pipe_all_backward(uint32_t nstages, sf_arena *arena)
{
    bool *all = SF_ARRAY(arena, nstages, bool);
    memset(all, true, nstages * sizeof *all);
    return all;
}

const sf_stage_edge *sf_pipe_chain(uint32_t nstages, sf_arena *arena)
{
    sf_stage_edge *edges = SF_ARRAY(arena, nstages, sf_stage_edge);
    for (uint32_t s = 0; s + 1 < nstages; s++)
        edges[s] = (sf_stage_edge){s, s + 1};
    return edges;
}

void sf_stage_task_name(sf_stage_task task, char out[32])
{
    snprintf(out, 32, "%c%" PRIu32 ".%" PRIu32,
             task.pass <= SF_PASS_WEIGHTS ? SF_PASS_LETTERS[task.pass] : '?', task.stage,
             task.microbatch);
}

/* Jobs */

typedef struct making {
    const sf_pipe *pipe;
    const sf_pipe_costs *costs;
    sf_pipe_jobs *out;
    sf_job *jobs;
    sf_wait *waits;
} making;

static int64_t cost_of(const int64_t *costs, size_t index)
{
    return costs ? costs[index] : 0;
}

static void count_kinds(making *m, sf_arena *arena)
{
    m->out->kind = SF_ARRAY(arena, m->pipe->nstages * SF_PASSES, uint32_t);
    for (uint32_t s = 0; s < m->pipe->nstages; s++)
        for (sf_pass pass = SF_PASS_FORWARD; pass <= SF_PASS_WEIGHTS; pass++)
            m->out->kind[s * SF_PASSES + pass] =
                sf_pipe_has(m->pipe, s, pass) ? m->out->nkinds++ : UINT32_MAX;
}

static sf_job make_job(const making *m, sf_stage_task task)
{
    sf_job job = {.time = cost_of(m->costs->time, task.stage * SF_PASSES + task.pass),
                  .machines = sf_pipe_hosts(m->pipe, task.stage, task.microbatch),
                  .microbatch = task.microbatch};
    int64_t held = cost_of(m->costs->held, task.stage);
    int64_t late = m->pipe->splits_weights ? cost_of(m->costs->late, task.stage) : 0;
    if (task.pass == SF_PASS_FORWARD) {
        job.at_start = held;
        job.at_end = m->pipe->has_backward[task.stage] ? 0 : -held;
    } else {
        job.at_end = task.pass == SF_PASS_BACKWARD ? late - held : -late;
    }
    return job;
}

static void add_wait(making *m, sf_stage_task before, sf_stage_task after, int64_t delay)
{
    if (!sf_pipe_has(m->pipe, before.stage, before.pass) ||
        !sf_pipe_has(m->pipe, after.stage, after.pass))
        return;
    m->waits[m->out->jobs.nwaits++] =
        (sf_wait){sf_job_of(m->out, before), sf_job_of(m->out, after), delay};
}

static void add_waits(making *m, uint32_t microbatch)
{
    const sf_pipe *pipe = m->pipe;
    for (uint32_t e = 0; e < pipe->nedges; e++) {
        uint32_t from = pipe->edges[e].from, to = pipe->edges[e].to;
        bool stays = sf_pipe_hosts(pipe, from, microbatch) == sf_pipe_hosts(pipe, to, microbatch);
        add_wait(m, (sf_stage_task){from, microbatch, SF_PASS_FORWARD},
                 (sf_stage_task){to, microbatch, SF_PASS_FORWARD},
                 stays ? 0 : cost_of(m->costs->ahead, e));
        add_wait(m, (sf_stage_task){to, microbatch, SF_PASS_BACKWARD},
                 (sf_stage_task){from, microbatch, SF_PASS_BACKWARD},
                 stays ? 0 : cost_of(m->costs->back, e));
    }
    for (uint32_t s = 0; s < pipe->nstages; s++) {
        add_wait(m, (sf_stage_task){s, microbatch, SF_PASS_FORWARD},
                 (sf_stage_task){s, microbatch, SF_PASS_BACKWARD}, 0);
        add_wait(m, (sf_stage_task){s, microbatch, SF_PASS_BACKWARD},
                 (sf_stage_task){s, microbatch, SF_PASS_WEIGHTS}, 0);
    }
}

void sf_pipe_make_jobs(const sf_pipe *pipe, const sf_pipe_costs *costs, uint32_t more,
                       sf_arena *arena, sf_pipe_jobs *out)
{
    static const sf_pipe_costs none;
    memset(out, 0, sizeof *out);
    making m = {.pipe = pipe, .costs = costs ? costs : &none, .out = out};
    count_kinds(&m, arena);
    size_t njobs = (size_t)out->nkinds * pipe->nmicrobatches;
    size_t nwaits = (2 * (size_t)pipe->nedges + 2 * (size_t)pipe->nstages) * pipe->nmicrobatches;
    m.jobs = SF_ARRAY(arena, njobs, sf_job);
    m.waits = SF_ARRAY(arena, nwaits + more, sf_wait);
    out->tasks = SF_ARRAY(arena, njobs, sf_stage_task);
    for (uint32_t microbatch = 0; microbatch < pipe->nmicrobatches; microbatch++) {
        for (uint32_t s = 0; s < pipe->nstages; s++)
            for (sf_pass pass = SF_PASS_FORWARD; pass <= SF_PASS_WEIGHTS; pass++)
                if (sf_pipe_has(pipe, s, pass)) {
                    sf_stage_task task = {s, microbatch, pass};
                    out->tasks[out->jobs.njobs] = task;
                    m.jobs[out->jobs.njobs++] = make_job(&m, task);
                }
        add_waits(&m, microbatch);
    }
    out->jobs.jobs = m.jobs;
    out->jobs.waits = m.waits;
    out->jobs.nmachines = pipe->ngroups;
    out->jobs.limits = m.costs->limits;
    sf_jobs_index(&out->jobs, arena);
}

sf_queues sf_schedule_queues(const sf_schedule *schedule, const sf_pipe_jobs *jobs, sf_arena *arena)
{
    sf_queues queues = {schedule->ntasks, SF_ARRAY(arena, schedule->pipe.ngroups, uint32_t *)};
    for (uint32_t g = 0; g < schedule->pipe.ngroups; g++) {
        queues.jobs[g] = SF_ARRAY(arena, schedule->ntasks[g] + 1, uint32_t);
        for (uint32_t i = 0; i < schedule->ntasks[g]; i++)
            queues.jobs[g][i] = sf_job_of(jobs, schedule->tasks[g][i]);
    }
    return queues;
}

void sf_schedule_of_queues(const sf_pipe *pipe, const sf_pipe_jobs *jobs, const sf_queues *queues,
                           sf_arena *arena, sf_schedule *out)
{
    *out = (sf_schedule){*pipe, SF_ARRAY(arena, pipe->ngroups, uint32_t),
                         SF_ARRAY(arena, pipe->ngroups, sf_stage_task *)};
    for (uint32_t g = 0; g < pipe->ngroups; g++) {
        out->ntasks[g] = queues->counts[g];
        out->tasks[g] = SF_ARRAY(arena, queues->counts[g] + 1, sf_stage_task);
        for (uint32_t i = 0; i < queues->counts[g]; i++)
            out->tasks[g][i] = jobs->tasks[queues->jobs[g][i]];
    }
}

void sf_schedule_time(const sf_schedule *schedule, const sf_pipe_costs *costs, sf_arena *arena,
                      sf_pipe_jobs *jobs, sf_times *times)
{
    sf_pipe_make_jobs(&schedule->pipe, costs, 0, arena, jobs);
    sf_queues queues = sf_schedule_queues(schedule, jobs, arena);
    sf_queues_time(&jobs->jobs, &queues, arena, times);
}

int64_t sf_schedule_rehearse(const sf_schedule *schedule, const sf_pipe_costs *costs,
                             sf_arena *arena)
{
    sf_pipe_jobs jobs;
    sf_pipe_make_jobs(&schedule->pipe, costs, 0, arena, &jobs);
    sf_queues queues = sf_schedule_queues(schedule, &jobs, arena);
    return sf_queues_time_with_ports(&jobs.jobs, &queues, arena);
}

/* Check */

sf_status sf_pipe_check(const sf_pipe *pipe, sf_diag *diag)
{
    if (pipe->nstages == 0 || pipe->nmicrobatches == 0 || pipe->ngroups == 0)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                       "a schedule has at least one stage, one micro-batch and one pipeline rank");
    if (pipe->ngroups > SF_MOST_GROUPS)
        return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE,
                       "a schedule has at most %d pipeline ranks, not %" PRIu32, SF_MOST_GROUPS,
                       pipe->ngroups);
    if ((uint64_t)pipe->nstages * pipe->nmicrobatches > SF_MOST_TASKS / SF_PASSES)
        return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE,
                       "%" PRIu32 " stages in %" PRIu32 " micro-batches are more than %d tasks",
                       pipe->nstages, pipe->nmicrobatches, SF_MOST_TASKS);
    if ((uint64_t)pipe->nedges * pipe->nmicrobatches > SF_MOST_TASKS)
        return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE,
                       "%" PRIu32 " edges in %" PRIu32
                       " micro-batches are more than %d dependencies",
                       pipe->nedges, pipe->nmicrobatches, SF_MOST_TASKS);
    for (uint32_t e = 0; e < pipe->nedges; e++)
        if (pipe->edges[e].from >= pipe->nstages || pipe->edges[e].to >= pipe->nstages)
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                           "an edge goes from stage %" PRIu32 " to %" PRIu32
                           ", and there are %" PRIu32,
                           pipe->edges[e].from, pipe->edges[e].to, pipe->nstages);
    uint64_t all = sf_all_groups(pipe->ngroups);
    for (uint32_t s = 0; s < pipe->nstages; s++)
        for (uint32_t i = 0; i < pipe->nmicrobatches; i++) {
            uint64_t hosts = sf_pipe_hosts(pipe, s, i);
            if (hosts == 0 || (hosts & ~all) != 0)
                return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                               "no pipeline rank has a task of stage %" PRIu32
                               " in micro-batch %" PRIu32,
                               s, i);
        }
    return SF_OK;
}

/* Marks in `seen`, by job, the pipeline ranks of the tasks. */
static sf_status check_list(const sf_schedule *schedule, const sf_pipe_jobs *jobs, uint32_t group,
                            uint64_t *seen, sf_diag *diag)
{
    const sf_pipe *pipe = &schedule->pipe;
    for (uint32_t i = 0; i < schedule->ntasks[group]; i++) {
        sf_stage_task task = schedule->tasks[group][i];
        char name[32];
        sf_stage_task_name(task, name);
        if (task.stage >= pipe->nstages || task.microbatch >= pipe->nmicrobatches ||
            task.pass > SF_PASS_WEIGHTS || !sf_pipe_has(pipe, task.stage, task.pass))
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                           "pipeline rank %" PRIu32 " runs %s, which is no task of this pipeline",
                           group, name);
        if (!(sf_pipe_hosts(pipe, task.stage, task.microbatch) >> group & 1))
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                           "pipeline rank %" PRIu32 " runs %s, but does not host stage %" PRIu32
                           " in micro-batch %" PRIu32,
                           group, name, task.stage, task.microbatch);
        uint64_t bit = UINT64_C(1) << group;
        if (seen[sf_job_of(jobs, task)] & bit)
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "pipeline rank %" PRIu32 " runs %s twice",
                           group, name);
        seen[sf_job_of(jobs, task)] |= bit;
    }
    return SF_OK;
}

static sf_status check_lists(const sf_schedule *schedule, const sf_pipe_jobs *jobs, sf_arena *arena,
                             sf_diag *diag)
{
    uint64_t *seen = SF_ARRAY(arena, jobs->jobs.njobs, uint64_t);
    for (uint32_t g = 0; g < schedule->pipe.ngroups; g++)
        SF_TRY(check_list(schedule, jobs, g, seen, diag));
    for (uint32_t j = 0; j < jobs->jobs.njobs; j++) {
        uint64_t missing = jobs->jobs.jobs[j].machines & ~seen[j];
        if (missing) {
            char name[32];
            sf_stage_task_name(jobs->tasks[j], name);
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                           "pipeline rank %d does not run %s, which it hosts",
                           __builtin_ctzll(missing), name);
        }
    }
    return SF_OK;
}

/* "F1.0 on pipeline rank 1 waits for F0.0 on pipeline rank 0, which comes after B0.0 on pipeline rank 0, which ..." */
static sf_status report_circle(const sf_pipe_jobs *jobs, const sf_times *times, sf_diag *diag)
{
    enum { SHOWN = 16 };
    sf_buf text = {0};
    uint32_t machine =
        times->stuck[0]
            .machine; /* on which the task is said to be; its first, where it was waited for */
    for (uint32_t i = 0; i <= times->nstuck; i++) {
        if (i == SHOWN && times->nstuck > SHOWN) {
            sf_buf_printf(&text, " others (%" PRIu32 " tasks in all)", times->nstuck);
            break;
        }
        const sf_stuck *it = &times->stuck[i % times->nstuck];
        char name[32];
        sf_stage_task_name(jobs->tasks[it->job], name);
        if (machine == SF_BY_WAIT)
            machine = (uint32_t)__builtin_ctzll(jobs->jobs.jobs[it->job].machines);
        sf_buf_printf(&text, "%s on pipeline rank %" PRIu32, name, machine);
        machine = it->machine;
        if (i < times->nstuck)
            sf_buf_printf(&text, "%s %s ", i == 0 ? "" : ", which",
                          machine == SF_BY_WAIT ? "waits for" : "comes after");
    }
    sf_status status =
        sf_fail(diag, SF_EINPUT, SF_NOWHERE, "the schedule never ends: %s", text.text);
    sf_buf_free(&text);
    return status;
}

sf_status sf_schedule_check(const sf_schedule *schedule, sf_diag *diag)
{
    SF_TRY(sf_pipe_check(&schedule->pipe, diag));
    sf_arena arena = {0};
    sf_pipe_jobs jobs;
    sf_times times;
    sf_pipe_make_jobs(&schedule->pipe, NULL, 0, &arena, &jobs);
    sf_status status = check_lists(schedule, &jobs, &arena, diag);
    if (status == SF_OK) {
        sf_queues queues = sf_schedule_queues(schedule, &jobs, &arena);
        sf_queues_time(&jobs.jobs, &queues, &arena, &times);
        if (times.nstuck > 0)
            status = report_circle(&jobs, &times, diag);
    }
    sf_arena_free(&arena);
    return status;
}
