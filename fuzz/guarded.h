/* What a target does with an input, where memory may run out: then that is all. */
#ifndef FUZZ_GUARDED_H
#define FUZZ_GUARDED_H

#include <stdint.h>

#include "base/arena.h"
#include "base/guard.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef void fuzz_work(sf_str text, sf_arena *arena, sf_diag *diag);

struct fuzz_job {
    fuzz_work *work;
    sf_str text;
    sf_diag *diag;
};

static inline sf_status fuzz_do(void *context)
{
    const struct fuzz_job *job = context;
    sf_arena arena = {0};
    job->work(job->text, &arena, job->diag);
    sf_arena_free(&arena);
    return SF_OK;
}

static inline int fuzz_guarded(fuzz_work *work, const uint8_t *data, size_t size)
{
    struct fuzz_job job = {work, {(const char *)data, size}, sf_diag_new()};
    sf_guarded(fuzz_do, &job, job.diag);
    sf_diag_free(job.diag);
    return 0;
}

#endif
