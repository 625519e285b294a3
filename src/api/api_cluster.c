/* Clusters, by name or from files. */
#include <string.h>

#include "base/boundary.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/output.h"
#include "cluster/cluster.h"
#include "sim/measured_times.h"

struct opening {
    const char *what;
    sf_diag *diag;
    sf_cluster *cluster;
};

static bool is_file(const char *what)
{
    size_t length = strlen(what);
    return strcmp(what, "-") == 0 || strchr(what, '/') ||
           (length > 5 && strcmp(what + length - 5, ".json") == 0);
}

static sf_status open_cluster(void *context)
{
    struct opening *job = context;
    if (!is_file(job->what))
        return sf_cluster_make(sf_str_of(job->what), job->diag, &job->cluster);
    sf_arena arena = {0};
    sf_str text;
    sf_status status = sf_file_read(job->what, &arena, 0, &text, job->diag);
    if (status == SF_OK)
        status = sf_cluster_read(text, job->what, job->diag, &job->cluster);
    if (status == SF_OK)
        job->cluster->origin = sf_reference_of(job->what, text, &job->cluster->arena);
    sf_arena_free(&arena);
    return status;
}

sf_status sf_cluster_open(const char *what, sf_diag *diag, sf_cluster **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, what, out);
    struct opening job = {.what = what, .diag = diag};
    SF_TRY(sf_guarded(open_cluster, &job, diag));
    *out = job.cluster;
    return SF_OK;
}

struct seeing {
    const sf_cluster *cluster;
    const char *trace;
    sf_diag *diag;
    sf_cluster *out;
};

static sf_status see_run(void *context)
{
    struct seeing *job = context;
    sf_arena arena = {0};
    sf_str text;
    sf_status status = sf_file_read(job->trace, &arena, 0, &text, job->diag);
    if (status == SF_OK)
        status = sf_cluster_see(job->cluster, text, job->trace, job->diag, &job->out);
    sf_arena_free(&arena);
    return status;
}

sf_status sf_cluster_measured(const sf_cluster *cluster, const char *trace, sf_diag *diag,
                              sf_cluster **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, cluster, trace, out);
    struct seeing job = {.cluster = cluster, .trace = trace, .diag = diag};
    SF_TRY(sf_guarded(see_run, &job, diag));
    *out = job.out;
    return SF_OK;
}

struct saving {
    const sf_cluster *cluster;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status save_cluster(void *context)
{
    struct saving *job = context;
    sf_buf text = {0};
    sf_cluster_write(job->cluster, &text);
    sf_status status = sf_output_write(job->output, &text, job->diag);
    sf_buf_free(&text);
    return status;
}

sf_status sf_cluster_save(const sf_cluster *cluster, const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, cluster);
    struct saving job = {cluster, output, diag};
    return sf_guarded(save_cluster, &job, diag);
}
