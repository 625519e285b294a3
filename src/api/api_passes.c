/* Passes of a plan. */
#include "base/boundary.h"
#include "sheaf/pass.h"

#include <string.h>

#include "base/guard.h"
#include "cluster/cluster.h"
#include "pass/pass.h"
#include "plan/plan.h"

struct using
{
    sf_plan *plan;
    const char *passes;
    const sf_cluster *cluster;
    int64_t memory;
    sf_diag *diag;
};

/* Whether the library has the cluster by its name: then only the name is kept. */
static bool is_of_library(const sf_cluster *cluster)
{
    sf_cluster *same = NULL;
    sf_diag unheard = {0};
    bool is = sf_cluster_make(sf_str_of(cluster->name), &unheard, &same) == SF_OK &&
              sf_cluster_hash(same) == sf_cluster_hash(cluster);
    sf_diag_clear(&unheard);
    sf_cluster_free(same);
    return is;
}

static sf_status use_passes(void *context)
{
    struct using *job = context;
    sf_arena arena = {0};
    sf_pass_list list;
    sf_buf text = {0};
    sf_status status = sf_pass_list_load(job->passes, &arena, job->diag, &list);
    sf_plan_passes passes = {list.count ? job->passes : "", "", job->memory, true};
    if (status == SF_OK && job->cluster && is_of_library(job->cluster))
        passes.cluster = job->cluster->name;
    else if (status == SF_OK && job->cluster)
        sf_cluster_write(job->cluster, &text);
    if (text.text)
        passes.cluster = text.text;
    if (status == SF_OK)
        sf_plan_set_passes(job->plan, &passes);
    sf_buf_free(&text);
    sf_arena_free(&arena);
    return status;
}

sf_status sf_plan_use_passes(sf_plan *plan, const char *passes, const sf_cluster *cluster,
                             int64_t memory, sf_diag *diag)
{
    SF_NEED(diag, plan, passes);
    struct using job = {plan, passes ? passes : "", cluster, memory < 0 ? 0 : memory, diag};
    return sf_guarded(use_passes, &job, diag);
}

const char *sf_plan_passes_of(const sf_plan *plan)
{
    SF_NEED_OR(NULL, plan);
    return plan->passes.list;
}

const char *sf_pass_name(int index)
{
    return sf_pass_at(index) ? sf_pass_at(index)->name : NULL;
}

const char *sf_pass_about(int index)
{
    return sf_pass_at(index) ? sf_pass_at(index)->about : NULL;
}
