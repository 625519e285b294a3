/* What a plan was searched with, read without the step. */
#include <string.h>

#include "base/file.h"
#include "base/guard.h"
#include "plan/plan.h"

struct job {
    const char *path;
    sf_diag *diag;
    sf_plan_origin *out;
};

static sf_status read_text(const struct job *job, const sf_json *predicted, const char *key,
                           char *out, size_t size)
{
    sf_str text;
    out[0] = 0;
    if (!sf_json_string(sf_json_get(predicted, key), &text))
        return SF_OK;
    if (text.length >= size)
        return sf_fail(job->diag, SF_EINPUT, (sf_loc){.file = job->path},
                       "the name of the %s is too long", key);
    memcpy(out, text.at, text.length);
    out[text.length] = 0;
    return SF_OK;
}

static sf_status read_origin(struct job *job, sf_arena *arena)
{
    sf_str text;
    const sf_json *root;
    SF_TRY(sf_file_read(job->path, arena, 0, &text, job->diag));
    SF_TRY(sf_json_parse(text, job->path, arena, &root, job->diag));
    SF_TRY(sf_plan_read_format(root, job->path, job->diag));
    const sf_json *predicted = sf_json_get(root, "predicted");
    SF_TRY(read_text(job, predicted, "step", job->out->step, sizeof job->out->step));
    return read_text(job, predicted, "cluster", job->out->cluster, sizeof job->out->cluster);
}

static sf_status origin_guarded(void *context)
{
    sf_arena arena = {0};
    sf_status status = read_origin(context, &arena);
    sf_arena_free(&arena);
    return status;
}

sf_status sf_plan_origin_of(const char *path, sf_diag *diag, sf_plan_origin *out)
{
    struct job job = {path, diag, out};
    return sf_guarded(origin_guarded, &job, diag);
}
