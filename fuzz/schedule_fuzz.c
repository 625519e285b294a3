/* Read a schedule. One that is refused has a message; one that is taken runs to its end, can be drawn, and its text reads back as
 * the same text. */
#include <string.h>

#include "guarded.h"
#include "plan/pipeline/schedule.h"

static void read_and_write(sf_str text, sf_arena *arena, sf_diag *diag)
{
    sf_schedule schedule, recomputed;
    if (sf_schedule_read(text, "fuzz", arena, &schedule, diag) != SF_OK) {
        SF_ASSERT(sf_diag_count(diag) == 1);
        return;
    }
    SF_ASSERT(sf_diag_count(diag) == 0);
    sf_buf written = {0}, rewritten = {0};
    sf_schedule_write(&schedule, &written);
    sf_str view = {written.text, written.length};
    SF_ASSERT(sf_schedule_read(view, "written", arena, &recomputed, diag) == SF_OK);
    sf_schedule_write(&recomputed, &rewritten);
    SF_ASSERT(strcmp(written.text, rewritten.text) == 0);

    int64_t *time = SF_ARRAY(arena, (size_t)schedule.pipe.nstages * SF_PASSES, int64_t);
    for (size_t i = 0; i < (size_t)schedule.pipe.nstages * SF_PASSES; i++)
        time[i] = (int64_t)(i % 3);
    sf_pipe_jobs jobs;
    sf_times times;
    sf_schedule_time(&schedule, &(sf_pipe_costs){.time = time}, arena, &jobs, &times);
    SF_ASSERT(times.nstuck == 0);
    sf_buf_free(&written);
    sf_buf_free(&rewritten);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_guarded(read_and_write, data, size);
}
