/* Passes of a plan. */
#include "base/boundary.h"
#include "sheaf/pass.h"

#include <string.h>

#include "base/guard.h"
#include "cluster/cluster.h"
#include "pass/pass.h"
#include "pass/plan_passes.h"
#include "plan/plan.h"

struct using
{
    sf_plan *plan;
    const char *passes;
    const sf_cluster *cluster;
    int64_t memory;
    sf_diag *diag;
};

static sf_status use_passes(void *context)
{
    struct using *job = context;
    int64_t memory = job->memory;
    if (job->cluster)
        memory = sf_cluster_memory_limit(job->cluster, memory, job->diag);
    return sf_plan_name_passes(job->plan, job->passes, job->cluster, memory, job->diag);
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
