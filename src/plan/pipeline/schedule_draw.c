#include "plan/pipeline/schedule.h"

#include <inttypes.h>

enum { LEAST_COLUMNS = 10, MOST_COLUMNS = 10000 };

static char sign_of(sf_stage_task task)
{
    static const char *const first = "0aA";
    return (char)(first[task.pass] + (char)(task.microbatch % 10));
}

/* The task that covers most of the time from `begin` to `end` on a pipeline rank, or a blank if it
 * is idle for longer than any runs. Tasks follow each other, so tasks that end before `begin` are
 * skipped from then on: *next is the first that does not. */
static char draw_column(const sf_schedule *schedule, const sf_pipe_jobs *jobs,
                        const sf_times *times, uint32_t group, uint32_t *next, double begin,
                        double end)
{
    char best = ' ';
    double longest = 0, busy = 0;
    while (*next < schedule->ntasks[group] &&
           (double)times->end[sf_job_of(jobs, schedule->tasks[group][*next])] <= begin)
        ++*next;
    for (uint32_t i = *next; i < schedule->ntasks[group]; i++) {
        uint32_t job = sf_job_of(jobs, schedule->tasks[group][i]);
        double from = (double)times->start[job], to = (double)times->end[job];
        if (from >= end)
            break;
        double covered = (to < end ? to : end) - (from > begin ? from : begin);
        busy += covered;
        if (covered > longest) {
            longest = covered;
            best = sign_of(schedule->tasks[group][i]);
        }
    }
    return end - begin - busy > longest ? ' ' : best;
}

void sf_schedule_draw(const sf_schedule *schedule, const sf_pipe_jobs *jobs, const sf_times *times,
                      uint32_t width, sf_buf *out)
{
    uint32_t margin = schedule->pipe.ngroups > 10 ? 5 : 4;
    uint32_t columns = width < margin + LEAST_COLUMNS ? LEAST_COLUMNS : width - margin;
    columns = columns > MOST_COLUMNS ? MOST_COLUMNS : columns;
    double scale = (double)times->makespan / (double)columns;
    for (uint32_t g = 0; g < schedule->pipe.ngroups; g++) {
        sf_buf_printf(out, "%*" PRIu32 " |", (int)margin - 3, g);
        uint32_t next = 0;
        for (uint32_t c = 0; c < columns; c++)
            sf_buf_putc(out,
                        draw_column(schedule, jobs, times, g, &next, c * scale, (c + 1) * scale));
        sf_buf_puts(out, "|\n");
    }
}
