/* Verifies a schedule, and finds the faulty primitive. */
#include <string.h>

#include "api/api_options.h"
#include "api/primitive/primitives.h"
#include "api/verify/verify.h"
#include "base/guard.h"

struct blaming {
    const sf_primitives *list;
    const sf_plan_spec *spec;
    const sf_verify_options *verify;
    sf_arena arena;
    size_t culprit; /* or the number of entries: none */
};

/* The first so many, and the mesh, without which there are no ranks. */
static sf_primitives take_first(struct blaming *job, size_t count)
{
    sf_primitives part = *job->list;
    part.graph = part.base;
    part.entries = SF_ARRAY(&job->arena, part.nentries + 1, sf_entry);
    part.nentries = 0;
    for (size_t i = 0; i < job->list->nentries; i++) {
        const sf_entry *entry = &job->list->entries[i];
        bool mesh =
            entry->said.kind == SF_PRIMITIVE_SET &&
            (strcmp(entry->said.name, "mesh") == 0 || strcmp(entry->said.name, "devices") == 0);
        if (i < count || mesh)
            part.entries[part.nentries++] = *entry;
        if (i < count && entry->made)
            part.graph = entry->made;
    }
    return part;
}

/* The step split, and as primitives have changed it, beside the one that they are of. */
static sf_status compare(const sf_primitives *list, const sf_plan *plan,
                         const sf_verify_options *options, sf_diag *diag, sf_verify_report **out)
{
    sf_verify_options own;
    sf_plan_trial trial = {.reference = list->base, .graph = list->graph, .plan = plan};
    SF_TRY(SF_TAKE(sf_verify_options, options, &own, diag));
    return sf_verify_trial(&trial, &own, diag, out);
}

/* Whether the step differs with the first so many. A part of a schedule that makes no plan is not to blame. */
static bool differs_with(struct blaming *job, size_t count)
{
    sf_primitives part = take_first(job, count);
    sf_verify_report *report = NULL;
    sf_plan *plan;
    if (sf_primitives_pin(&part, job->spec, NULL, &plan) != SF_OK)
        return false;
    sf_status status = compare(&part, plan, job->verify, NULL, &report);
    sf_verify_free(report);
    sf_plan_free(plan);
    return status == SF_EMISMATCH;
}

static sf_status blame(void *context)
{
    struct blaming *job = context;
    size_t good = 0, bad = job->list->nentries;
    job->culprit = bad;
    if (bad == 0 || differs_with(job, 0))
        return SF_OK;
    while (bad - good > 1) {
        size_t middle = good + (bad - good) / 2;
        if (differs_with(job, middle))
            bad = middle;
        else
            good = middle;
    }
    job->culprit = bad - 1;
    return SF_OK;
}

static sf_status name_culprit(const sf_primitives *list, const sf_plan_spec *spec,
                              const sf_verify_options *verify, sf_diag *diag, int *culprit)
{
    struct blaming job = {.list = list, .spec = spec, .verify = verify};
    SF_TRY(sf_guarded(blame, &job, diag));
    sf_arena_free(&job.arena);
    if (job.culprit >= list->nentries)
        return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                       "the step differs on these ranks before any primitive is applied");
    *culprit = (int)job.culprit;
    const sf_entry *entry = &list->entries[job.culprit];
    return sf_fail(diag, SF_EMISMATCH, sf_said_at(&entry->said),
                   "from this primitive on the step differs from the unsplit one: %s", entry->text);
}

sf_status sf_primitives_verify(const sf_primitives *list, const sf_plan_spec *spec,
                               const sf_verify_options *verify, sf_diag *diag,
                               sf_verify_report **out, int *culprit)
{
    SF_CLEAR(out);
    SF_NEED(diag, list, out, culprit);
    sf_plan *plan;
    *culprit = -1;
    SF_TRY(sf_primitives_pin(list, spec, diag, &plan));
    sf_status status = sf_plan_check(plan, list->graph, 0, diag);
    if (status == SF_OK) {
        status = compare(list, plan, verify, diag, out);
        if (status == SF_EMISMATCH)
            status = name_culprit(list, spec, verify, diag, culprit);
    }
    sf_plan_free(plan);
    return status;
}
