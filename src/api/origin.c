/* What a plan was made from, read without the step. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/guard.h"
#include "plan/plan.h"

struct job {
    const char *path;
    sf_diag *diag;
    sf_plan_origin *out;
};

static sf_status keep_path(const struct job *job, const char *path, char *out, size_t size)
{
    if (strlen(path) >= size)
        return sf_fail(job->diag, SF_EINPUT, (sf_loc){.file = job->path},
                       "a path in this plan is longer than %zu bytes", size - 1);
    strcpy(out, path);
    return SF_OK;
}

/* The file that `file` tells where to find; else what the key says, as plans that do not know files have it. */
static sf_status read_path(const struct job *job, sf_arena *arena, const sf_json *file,
                           const sf_json *predicted, const char *key, char *out, size_t size)
{
    const char *path = sf_reference_find(file, job->path, arena);
    if (!path && (path = sf_json_path(predicted, key, arena))) {
        const char *beside = sf_path_beside(job->path, path, arena);
        if (access(path, R_OK) != 0 && access(beside, R_OK) == 0)
            path = beside;
    }
    return keep_path(job, path ? path : "", out, size);
}

static sf_status read_origin(struct job *job, sf_arena *arena)
{
    sf_str text;
    const sf_json *root;
    SF_TRY(sf_file_read(job->path, arena, 0, &text, job->diag));
    SF_TRY(sf_json_parse(text, job->path, arena, &root, job->diag));
    SF_TRY(sf_plan_read_format(root, job->path, job->diag));
    const sf_json *predicted = sf_json_get(root, "predicted");
    SF_TRY(read_path(job, arena, sf_json_get(root, "source"), predicted, "step", job->out->step,
                     sizeof job->out->step));
    return read_path(job, arena, sf_json_get(predicted, "cluster_file"), predicted, "cluster",
                     job->out->cluster, sizeof job->out->cluster);
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
