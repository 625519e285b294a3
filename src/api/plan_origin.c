/* The origin of a plan: the step's file and cluster, and how the step was read. */
#include <string.h>
#include <unistd.h>

#include "api/api_options.h"
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

/* The path that `file` refers to; else the value of the key, in plans without paths. */
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

static sf_status read_root(const char *path, sf_arena *arena, sf_diag *diag, const sf_json **out)
{
    sf_str text;
    SF_TRY(sf_file_read(path, arena, 0, &text, diag));
    SF_TRY(sf_plan_refuse_step(text, path, diag));
    SF_TRY(sf_json_parse(text, path, arena, out, diag));
    return sf_plan_read_format(*out, path, diag);
}

static sf_status read_origin(struct job *job, sf_arena *arena)
{
    const sf_json *root;
    SF_TRY(read_root(job->path, arena, job->diag, &root));
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
    sf_plan_origin own = {.size = sizeof own};
    struct job job = {path, diag, &own};
    SF_NEED(diag, path, out);
    SF_TRY(SF_CHECK_SIZE(sf_plan_origin, out, diag));
    SF_TRY(sf_guarded(origin_guarded, &job, diag));
    return SF_GIVE(sf_plan_origin, out, &own, diag);
}

/* Reading the step */

struct step_job {
    const char *plan;
    sf_diag *diag;
    sf_load_options options;
    sf_arena arena; /* of the options' values */
};

static void take_reading(struct step_job *job, const sf_json *reading)
{
    sf_load_options *options = &job->options;
    const sf_json *sidecar = sf_json_get(reading, "sidecar");
    sf_str state;
    bool some = true;
    if (options->unroll == 0)
        sf_json_int(sf_json_get(reading, "unroll"), &options->unroll);
    if (options->assume_trip_count == 0)
        sf_json_int(sf_json_get(reading, "assume_trip_count"), &options->assume_trip_count);
    if (!options->state && sf_json_string(sf_json_get(reading, "state"), &state))
        options->state = sf_arena_string(&job->arena, state.at, state.length);
    if (!options->sidecar && sf_json_bool(sidecar, &some) && !some)
        options->sidecar = "none";
    if (!options->sidecar)
        options->sidecar = sf_reference_find(sidecar, job->plan, &job->arena);
}

static sf_status find_reading(void *context)
{
    struct step_job *job = context;
    const sf_json *root;
    SF_TRY(read_root(job->plan, &job->arena, job->diag, &root));
    take_reading(job, sf_json_get(root, "reading"));
    return SF_OK;
}

static sf_status load_step(struct step_job *job, const char *step, sf_graph **out)
{
    sf_plan_origin origin = {.size = sizeof origin};
    if (!step) {
        SF_TRY(sf_plan_origin_of(job->plan, job->diag, &origin));
        step = origin.step;
    }
    if (!*step || strcmp(step, "-") == 0)
        return sf_fail(job->diag, SF_EUSAGE, (sf_loc){.file = job->plan},
                       "the plan does not say where its step is, which was no file");
    return sf_load(step, &job->options, job->diag, out);
}

sf_status sf_plan_load_step(const char *plan, const char *step, const sf_load_options *options,
                            sf_diag *diag, sf_graph **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, plan, out);
    struct step_job job = {.plan = plan, .diag = diag};
    SF_TRY(SF_TAKE(sf_load_options, options, &job.options, diag));
    sf_status status = sf_guarded(find_reading, &job, diag);
    if (status == SF_OK)
        status = load_step(&job, step, out);
    sf_arena_free(&job.arena);
    return status;
}
