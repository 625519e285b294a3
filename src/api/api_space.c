/* Spaces: plans made by primitives. */
#include "sheaf/space.h"

#include "api/api_spec.h"
#include "base/boundary.h"
#include "base/guard.h"
#include "base/mem.h"
#include "base/output.h"
#include "plan/op_selector.h"
#include "plan/replicated_compute.h"
#include "plan/space/space.h"
#include "plan/stacked_layers.h"

struct opening {
    const sf_graph *graph;
    int devices;
    sf_space *space;
};

static sf_status open_space(void *context)
{
    struct opening *job = context;
    job->space = sf_alloc(sizeof *job->space);
    job->space->graph = job->graph;
    job->space->devices = job->devices;
    return SF_OK;
}

sf_status sf_space_new(const sf_graph *graph, int devices, sf_diag *diag, sf_space **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, graph, out);
    enum { MOST_DEVICES = 1 << 20 };
    struct opening job = {.graph = graph, .devices = devices};
    if (devices < 1 || devices > MOST_DEVICES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a space has 1 to %d devices, not %d",
                       MOST_DEVICES, devices);
    SF_TRY(sf_guarded(open_space, &job, diag));
    *out = job.space;
    return SF_OK;
}

void sf_space_free(sf_space *space)
{
    if (!space)
        return;
    sf_arena_free(&space->arena);
    sf_free(space);
}

/* One thing that is said. */
struct saying {
    sf_space *space;
    const sf_said_trans *trans;
    const sf_said_assign *assign;
    const sf_said_order *order;
    sf_diag *diag;
};

static sf_status say_guarded(void *context)
{
    struct saying *job = context;
    if (job->trans)
        return sf_space_add_trans(job->space, job->trans, job->diag);
    if (job->assign)
        return sf_space_add_assign(job->space, job->assign, job->diag);
    return sf_space_add_order(job->space, job->order, job->diag);
}

/* If memory runs out, memory of the call is freed: the space is restored. */
static sf_status say(struct saying job)
{
    sf_space before = *job.space;
    sf_status status = sf_guarded(say_guarded, &job, job.diag);
    if (status == SF_ENOMEM)
        *job.space = before;
    return status;
}

sf_status sf_trans(sf_space *space, const char *ops, const char *how, int parts, sf_where where,
                   sf_diag *diag)
{
    SF_NEED(diag, space, how);
    sf_said_trans said = {ops, how, parts, where};
    return say((struct saying){.space = space, .trans = &said, .diag = diag});
}

const char *sf_trans_name(int index)
{
    return sf_transformation_name(index);
}

sf_status sf_assign(sf_space *space, const char *ops, int microbatch, const int *devices,
                    int ndevices, sf_diag *diag)
{
    SF_NEED(diag, space);
    if (ndevices > 0)
        SF_NEED(diag, devices);
    sf_said_assign said = {ops, microbatch, ndevices, devices};
    return say((struct saying){.space = space, .assign = &said, .diag = diag});
}

sf_status sf_order(sf_space *space, const sf_task *before, const sf_task *after, sf_diag *diag)
{
    sf_said_order said;
    SF_NEED(diag, space, before, after);
    SF_TRY(SF_TAKE(sf_task, before, &said.before, diag));
    SF_TRY(SF_TAKE(sf_task, after, &said.after, diag));
    return say((struct saying){.space = space, .order = &said, .diag = diag});
}

struct listing {
    const sf_graph *graph;
    const char *ops;
    const sf_output *output;
    sf_diag *diag;
};

static sf_status list_factors(void *context)
{
    struct listing *job = context;
    sf_arena arena = {0};
    sf_buf out = {0};
    sf_ops ops;
    sf_status status = sf_ops_find(job->graph, job->ops, &arena, job->diag, &ops);
    if (status == SF_OK) {
        sf_ops_list(job->graph, &ops, &out);
        status = sf_output_report(job->output, &out, job->diag);
    }
    sf_buf_free(&out);
    sf_arena_free(&arena);
    return status;
}

sf_status sf_space_factors(const sf_graph *graph, const char *ops, const sf_output *output,
                           sf_diag *diag)
{
    SF_NEED(diag, graph);
    struct listing job = {graph, ops, output, diag};
    return sf_guarded(list_factors, &job, diag);
}

struct making {
    const sf_space *space;
    sf_plan_spec said;
    sf_diag *diag;
    sf_plan *plan;
};

/* The primitives of a space replace these fields. */
static sf_status check_fields(const struct making *job, const sf_spec *spec)
{
    const char *field = spec->stages.kind != SF_STAGES_UNSAID       ? "stages"
                        : spec->micro_batches > 0                   ? "micro_batches"
                        : spec->co_shard.is_said                    ? "co_shard"
                        : spec->shard_state != SF_STATE_AS_RECIPE   ? "shard_state"
                        : spec->recompute.kind == SF_RECOMPUTE_AUTO ? "recompute \"auto\""
                                                                    : NULL;
    if (field)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "%s: of a space, this follows from its primitives", field);
    if (spec->ranks > 0 && spec->ranks != job->space->devices)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "the space has %d devices, and there are %d ranks", job->space->devices,
                       spec->ranks);
    return SF_OK;
}

static sf_status make_guarded(void *context)
{
    struct making *job = context;
    sf_arena arena = {0};
    sf_spec spec;
    sf_status status = sf_spec_read(&job->said, &arena, job->diag, &spec);
    if (status == SF_OK)
        status = check_fields(job, &spec);
    if (status == SF_OK)
        status = sf_space_make(job->space, &spec, job->diag, &job->plan);
    if (status == SF_OK)
        status = sf_spec_finish(&spec, NULL, NULL, job->diag, job->plan);
    if (status == SF_OK) {
        sf_warn_repeated(job->space->graph, job->plan, job->diag);
        sf_warn_stacked(job->space->graph, job->plan, job->diag);
    } else {
        sf_plan_free(job->plan);
    }
    sf_arena_free(&arena);
    return status;
}

sf_status sf_space_plan(const sf_space *space, const sf_plan_spec *spec, sf_diag *diag,
                        sf_plan **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, space, out);
    struct making job = {.space = space, .diag = diag};
    SF_TRY(sf_spec_take(spec, diag, &job.said));
    SF_TRY(sf_guarded(make_guarded, &job, diag));
    *out = job.plan;
    return SF_OK;
}
