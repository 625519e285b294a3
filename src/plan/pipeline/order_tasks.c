#include "plan/pipeline/order_tasks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* After how many micro-batches the hosts repeat, and all are used equally often: 1 or 2; 0 if
 * neither. */
static uint32_t find_period(const sf_pipe *pipe)
{
    for (uint32_t period = 1; period <= 2; period++) {
        bool same = pipe->nmicrobatches % period == 0;
        for (uint32_t s = 0; s < pipe->nstages && same; s++)
            for (uint32_t i = period; i < pipe->nmicrobatches && same; i++)
                same = sf_pipe_hosts(pipe, s, i) == sf_pipe_hosts(pipe, s, i - period);
        if (same)
            return period;
    }
    return 0;
}

static void add(sf_pipe_jobs *jobs, sf_wait *waits, sf_stage_task before, sf_stage_task after)
{
    waits[jobs->jobs.nwaits++] = (sf_wait){sf_job_of(jobs, before), sf_job_of(jobs, after), 0};
}

/* Each pass of a stage comes after the same pass of the previous micro-batch with the same
 * hosts. */
static void keep_turns_in_order(const sf_pipe *pipe, sf_pipe_jobs *jobs, sf_wait *waits)
{
    for (uint32_t i = 1; i < pipe->nmicrobatches; i++)
        for (uint32_t s = 0; s < pipe->nstages; s++) {
            uint32_t before = i;
            while (before > 0 && sf_pipe_hosts(pipe, s, before - 1) != sf_pipe_hosts(pipe, s, i))
                before--;
            if (before == 0)
                continue;
            for (sf_pass pass = SF_PASS_FORWARD; pass <= SF_PASS_WEIGHTS; pass++)
                if (sf_pipe_has(pipe, s, pass))
                    add(jobs, waits, (sf_stage_task){s, before - 1, pass},
                        (sf_stage_task){s, i, pass});
        }
}

/* Circles */

static const char *name_task(const sf_pipe_jobs *jobs, const sf_arrange_options *options,
                             uint32_t job, char out[128])
{
    sf_stage_task task = jobs->tasks[job];
    sf_stage_task_name(task, out);
    size_t length = strlen(out);
    if (options->names && options->names[task.stage])
        snprintf(out + length, 128 - length, " (%.90s)", options->names[task.stage]);
    return out;
}

/* Jobs that are left when all that wait for nothing that is left are taken away: each waits for another of them. */
static bool *find_circling(const sf_jobs *jobs, sf_arena *arena)
{
    bool *left = SF_ARRAY(arena, jobs->njobs + 1, bool);
    uint32_t *missing = SF_ARRAY(arena, jobs->njobs + 1, uint32_t);
    uint32_t *ready = SF_ARRAY(arena, jobs->njobs + 1, uint32_t);
    uint32_t nready = 0;
    for (uint32_t j = 0; j < jobs->njobs; j++) {
        left[j] = true;
        if ((missing[j] = jobs->first_in[j + 1] - jobs->first_in[j]) == 0)
            ready[nready++] = j;
    }
    while (nready > 0) {
        uint32_t job = ready[--nready];
        left[job] = false;
        for (uint32_t o = jobs->first_out[job]; o < jobs->first_out[job + 1]; o++)
            if (--missing[jobs->waits[jobs->out[o]].after] == 0)
                ready[nready++] = jobs->waits[jobs->out[o]].after;
    }
    return left;
}

/* The wait of the job for another that is left. */
static const sf_wait *wait_within(const sf_jobs *jobs, const bool *left, uint32_t job)
{
    for (uint32_t i = jobs->first_in[job]; i < jobs->first_in[job + 1]; i++)
        if (left[jobs->waits[jobs->in[i]].before])
            return &jobs->waits[jobs->in[i]];
    return NULL;
}

/* "F0.1 (layer_0) must come after B1.0 (layer_1), as ordered, which reads what F1.0 (layer_1)
 * makes, ..." `nown`: how many waits are the pipeline's own, and those of micro-batches in order;
 * the others were fixed by the caller. */
static sf_status report_circle(const sf_pipe_jobs *pipe_jobs, const sf_arrange_options *options,
                               uint32_t ndata, uint32_t nown, sf_arena *arena, sf_diag *diag)
{
    enum { SHOWN = 16 };
    const sf_jobs *jobs = &pipe_jobs->jobs;
    const bool *left = find_circling(jobs, arena);
    uint32_t *seen = SF_ARRAY(arena, jobs->njobs + 1, uint32_t), job = 0, steps = 0;
    while (job < jobs->njobs && !left[job])
        job++;
    if (job == jobs->njobs)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "no order of the tasks was found");
    for (; !seen[job]; job = wait_within(jobs, left, job)->before)
        seen[job] = ++steps;
    uint32_t first = job;
    char name[128];
    sf_buf text = {0};
    sf_buf_puts(&text, name_task(pipe_jobs, options, job, name));
    for (int shown = 0; shown == 0 || job != first; shown++) {
        const sf_wait *wait = wait_within(jobs, left, job);
        uint32_t index = (uint32_t)(wait - jobs->waits);
        job = wait->before;
        if (shown == SHOWN) {
            sf_buf_puts(&text, ", and so on");
            break;
        }
        sf_buf_printf(&text, "%s %s %s", shown ? ", which" : "",
                      index < ndata  ? "needs what is made by"
                      : index < nown ? "must come after"
                                     : "is ordered after",
                      name_task(pipe_jobs, options, job, name));
    }
    sf_status status =
        sf_fail(diag, SF_EINPUT, SF_NOWHERE, "the order goes in a circle: %s", text.text);
    sf_buf_free(&text);
    return status;
}

static sf_status refuse(const sf_pipe_jobs *jobs, const sf_order_result *result, sf_diag *diag)
{
    for (uint32_t g = 0; g < jobs->jobs.nmachines; g++)
        if (result->times.peaks[g] > jobs->jobs.limits[g])
            return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                           "no order was found in which pipeline rank %" PRIu32
                           " holds at most %" PRId64
                           " bytes of activations; the best one holds %" PRId64,
                           g, jobs->jobs.limits[g], result->times.peaks[g]);
    return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE, "no order was found that fits into memory");
}

/* Fixed orders that no pipeline rank would keep: they wait for data, and for nothing else */

typedef struct reaching {
    const sf_jobs *jobs;
    const uint32_t *next; /* by job and machine: the next in the queue, or SF_NONE */
    uint32_t ndata;
    uint32_t *stamp, *queue; /* by job */
} reaching;

static void reach(reaching *r, uint32_t job, uint32_t stamp, uint32_t *count)
{
    if (job == UINT32_MAX || r->stamp[job] == stamp)
        return;
    r->stamp[job] = stamp;
    r->queue[(*count)++] = job;
}

/* Whether the end of the one leads to the start of the other, by data and lists. */
static bool reaches(reaching *r, uint32_t from, uint32_t to, uint32_t stamp)
{
    const sf_jobs *jobs = r->jobs;
    uint32_t count = 0;
    reach(r, from, stamp, &count);
    for (uint32_t at = 0; at < count; at++) {
        uint32_t job = r->queue[at];
        if (job == to)
            return true;
        for (uint32_t o = jobs->first_out[job]; o < jobs->first_out[job + 1]; o++)
            if (jobs->out[o] < r->ndata)
                reach(r, jobs->waits[jobs->out[o]].after, stamp, &count);
        for (uint32_t g = 0; g < jobs->nmachines; g++)
            reach(r, r->next[(size_t)job * jobs->nmachines + g], stamp, &count);
    }
    return false;
}

static sf_status check_held(const sf_pipe_jobs *pipe_jobs, const sf_queues *queues, uint32_t ndata,
                            const sf_arrange_options *options, sf_arena *arena, sf_diag *diag)
{
    const sf_jobs *jobs = &pipe_jobs->jobs;
    size_t room = (size_t)jobs->njobs * jobs->nmachines;
    uint32_t *next = SF_ARRAY(arena, room + 1, uint32_t);
    reaching r = {jobs, next, ndata, SF_ARRAY(arena, jobs->njobs + 1, uint32_t),
                  SF_ARRAY(arena, jobs->njobs + 1, uint32_t)};
    memset(next, 0xff, room * sizeof *next);
    for (uint32_t g = 0; g < jobs->nmachines; g++)
        for (uint32_t i = 0; i + 1 < queues->counts[g]; i++)
            next[(size_t)queues->jobs[g][i] * jobs->nmachines + g] = queues->jobs[g][i + 1];
    for (uint32_t i = 0; i < options->nfixed; i++) {
        uint32_t a = sf_job_of(pipe_jobs, options->fixed[i][0]);
        uint32_t b = sf_job_of(pipe_jobs, options->fixed[i][1]);
        if (jobs->jobs[a].machines & jobs->jobs[b].machines || reaches(&r, a, b, i + 1))
            continue;
        char one[128], other[128];
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                       "%s is said to come before %s, but they are on different devices, and "
                       "nothing would make the one wait for the other",
                       name_task(pipe_jobs, options, a, one),
                       name_task(pipe_jobs, options, b, other));
    }
    return SF_OK;
}

/* Jobs of the pipeline that keep the fixed orders, and if `in_turn` the order of micro-batches. */
typedef struct arranging {
    const sf_pipe *pipe;
    const sf_pipe_costs *costs;
    const sf_arrange_options *options;
    sf_arena *arena;
    uint32_t ndata, nown; /* waits for data; and with those of micro-batches in order */
} arranging;

/* Each other pipeline rank comes after the one of micro-batch 0, which sends it the values that
 * follow from weights alone. */
static void put_holders_first(const sf_pipe *pipe, sf_pipe_jobs *jobs, sf_wait *waits)
{
    for (uint32_t s = 0; s < pipe->nstages; s++)
        for (uint32_t i = 1; i < pipe->nmicrobatches; i++)
            if (sf_pipe_hosts(pipe, s, i) != sf_pipe_hosts(pipe, s, 0))
                add(jobs, waits, (sf_stage_task){s, 0, SF_PASS_FORWARD},
                    (sf_stage_task){s, i, SF_PASS_FORWARD});
}

static void make_jobs(arranging *a, bool in_turn, sf_pipe_jobs *jobs)
{
    const sf_arrange_options *options = a->options;
    uint32_t more = a->pipe->nstages * a->pipe->nmicrobatches * (SF_PASSES + 1) + options->nfixed;
    sf_pipe_make_jobs(a->pipe, a->costs, more, a->arena, jobs);
    sf_wait *waits = (sf_wait *)jobs->jobs.waits; /* made just now, with room */
    a->ndata = jobs->jobs.nwaits;
    if (in_turn)
        keep_turns_in_order(a->pipe, jobs, waits);
    if (options->holders_first)
        put_holders_first(a->pipe, jobs, waits);
    a->nown = jobs->jobs.nwaits;
    for (uint32_t i = 0; i < options->nfixed; i++)
        add(jobs, waits, options->fixed[i][0], options->fixed[i][1]);
    sf_jobs_index(&jobs->jobs, a->arena);
}

static void search(const arranging *a, const sf_pipe_jobs *jobs, sf_order_result *out)
{
    sf_queues known;
    sf_order_options order = {.nkinds = find_period(a->pipe) * jobs->nkinds,
                              .work = a->options->work};
    if (a->options->known) {
        known = sf_schedule_queues(a->options->known, jobs, a->arena);
        order.known = &known;
    }
    sf_order_search(&jobs->jobs, &order, a->arena, out);
}

sf_status sf_arrange(const sf_pipe *pipe, const sf_pipe_costs *costs,
                     const sf_arrange_options *options, sf_arena *arena, sf_arranged *out,
                     sf_diag *diag)
{
    SF_TRY(sf_pipe_check(pipe, diag));
    arranging a = {pipe, costs, options, arena, 0, 0};
    sf_pipe_jobs *jobs = &out->jobs;
    sf_order_result result;
    make_jobs(&a, true, jobs);
    search(&a, jobs, &result);
    /* fixed orders may reverse the order of micro-batches */
    if (!result.found && options->nfixed > 0) {
        make_jobs(&a, false, jobs);
        search(&a, jobs, &result);
    }
    if (!result.found)
        return report_circle(jobs, options, a.ndata, a.nown, arena, diag);
    if (!result.times.fits)
        return refuse(jobs, &result, diag);
    SF_TRY(check_held(jobs, &result.queues, a.ndata, options, arena, diag));
    out->times = result.times;
    out->bound = result.bound;
    out->proven = result.proven;
    sf_schedule_of_queues(pipe, jobs, &result.queues, arena, &out->schedule);
    return sf_schedule_check(&out->schedule, diag);
}
