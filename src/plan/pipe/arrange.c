#include "plan/pipe/arrange.h"

#include <inttypes.h>
#include <string.h>

/* After how many turns hosts are the same again, and all is done as often: 1 or 2; 0 if neither. */
static uint32_t find_period(const sf_pipe *pipe)
{
    for (uint32_t period = 1; period <= 2; period++) {
        bool same = pipe->nturns % period == 0;
        for (uint32_t s = 0; s < pipe->nstages && same; s++)
            for (uint32_t i = period; i < pipe->nturns && same; i++)
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

/* Each pass of a stage behind the same pass of the turn before that has the same hosts. */
static void keep_turns_in_order(const sf_pipe *pipe, sf_pipe_jobs *jobs, sf_wait *waits)
{
    for (uint32_t i = 1; i < pipe->nturns; i++)
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

static sf_status refuse(const sf_pipe_jobs *jobs, const sf_order_result *result, sf_diag *diag)
{
    if (!result->found)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                       "the tasks of the pipeline wait for each other in a circle, with what was "
                       "fixed of their order");
    for (uint32_t g = 0; g < jobs->jobs.nmachines; g++)
        if (result->times.peaks[g] > jobs->jobs.limits[g])
            return sf_fail(diag, SF_EWRONG, SF_NOWHERE,
                           "no order was found in which group %" PRIu32 " holds at most %" PRId64
                           " bytes of activations; the best one holds %" PRId64,
                           g, jobs->jobs.limits[g], result->times.peaks[g]);
    return sf_fail(diag, SF_EWRONG, SF_NOWHERE, "no order was found that fits into memory");
}

sf_status sf_arrange(const sf_pipe *pipe, const sf_pipe_costs *costs,
                     const sf_arrange_options *options, sf_arena *arena, sf_arranged *out,
                     sf_diag *diag)
{
    SF_TRY(sf_pipe_check(pipe, diag));
    sf_pipe_jobs *jobs = &out->jobs;
    uint32_t more = pipe->nstages * pipe->nturns * SF_PASSES + options->nfixed;
    sf_pipe_make_jobs(pipe, costs, more, arena, jobs);
    sf_wait *waits = (sf_wait *)jobs->jobs.waits; /* made just now, with room */
    keep_turns_in_order(pipe, jobs, waits);
    for (uint32_t i = 0; i < options->nfixed; i++)
        add(jobs, waits, options->fixed[i][0], options->fixed[i][1]);
    sf_jobs_index(&jobs->jobs, arena);

    sf_queues known;
    sf_order_options order = {.nkinds = find_period(pipe) * jobs->nkinds, .work = options->work};
    if (options->known) {
        known = sf_schedule_queues(options->known, jobs, arena);
        order.known = &known;
    }
    sf_order_result result;
    sf_order_search(&jobs->jobs, &order, arena, &result);
    if (!result.found || !result.times.fits)
        return refuse(jobs, &result, diag);
    out->times = result.times;
    out->bound = result.bound;
    out->proven = result.proven;
    sf_schedule_of_queues(pipe, jobs, &result.queues, arena, &out->schedule);
    return sf_schedule_check(&out->schedule, diag);
}
