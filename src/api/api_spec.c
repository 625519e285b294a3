#include "api/api_spec.h"

#include "api/api_options.h"
#include "base/guard.h"
#include "sheaf/pass.h"

sf_status sf_spec_take(const sf_plan_spec *theirs, sf_diag *diag, sf_plan_spec *ours)
{
    SF_TRY(SF_TAKE(sf_plan_spec, theirs, ours, diag));
    if (ours->npins > 0)
        SF_TRY(sf_check_texts("pins", ours->npins, ours->pins, diag));
    SF_CHECK_OPTIONS(diag, {"npins", ours->npins}, {"ranks", ours->ranks},
                     {"micro_batches", ours->micro_batches}, {"memory", (double)ours->memory});
    return SF_OK;
}

struct setting {
    sf_plan_spec spec;
    const char *field, *value;
    sf_diag *diag;
};

static sf_status set(void *context)
{
    struct setting *job = context;
    return sf_spec_set(&job->spec, job->field, job->value, SF_NOWHERE, job->diag);
}

sf_status sf_plan_spec_set(sf_plan_spec *spec, const char *field, const char *value, sf_diag *diag)
{
    SF_NEED(diag, spec, field, value);
    struct setting job = {.field = field, .value = value, .diag = diag};
    SF_TRY(SF_TAKE(sf_plan_spec, spec, &job.spec, diag));
    SF_TRY(sf_guarded(set, &job, diag));
    return SF_GIVE(sf_plan_spec, spec, &job.spec, diag);
}

sf_status sf_spec_finish(const sf_spec *spec, const char *passes, const sf_cluster *cluster,
                         sf_diag *diag, sf_plan *plan)
{
    if (spec->has_kernels)
        plan->kernels = spec->kernels;
    passes = spec->passes ? spec->passes : passes;
    return passes ? sf_plan_use_passes(plan, passes, cluster, spec->memory, diag) : SF_OK;
}
