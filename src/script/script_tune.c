/* Tuning a schedule: it is run once for each setting. */
#include "api/api_options.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/hash.h"
#include "sheaf/tune.h"

struct tuned {
    const char *path;
    sf_script_options options;
};

static sf_status apply_script(void *context, sf_settings *settings, sf_primitives *list,
                              sf_diag *diag)
{
    const struct tuned *job = context;
    sf_script_options options = job->options;
    options.settings = settings;
    return sf_script_run(job->path, &options, list, diag);
}

struct hashing {
    const char *path;
    uint64_t hash;
    sf_diag *diag;
};

static sf_status hash_file(void *context)
{
    struct hashing *job = context;
    sf_arena arena = {0};
    sf_str text;
    SF_TRY(sf_file_read(job->path, &arena, 0, &text, job->diag));
    job->hash = sf_hash_bytes(1, text.at, text.length);
    sf_arena_free(&arena);
    return SF_OK;
}

sf_status sf_tune_script(const sf_graph *graph, const char *path, const sf_script_options *script,
                         const sf_tune_options *options, sf_diag *diag, sf_tune_report **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, graph, path, out);
    struct tuned job = {.path = path};
    struct hashing file = {.path = path, .diag = diag};
    sf_tune_options given;
    SF_TRY(SF_TAKE(sf_script_options, script, &job.options, diag));
    SF_TRY(SF_TAKE(sf_tune_options, options, &given, diag));
    SF_TRY(sf_guarded(hash_file, &file, diag));
    given.program = file.hash;
    return sf_tune(graph, apply_script, &job, &given, diag, out);
}
