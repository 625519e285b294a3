/* Spaces: plans said piece by piece. */
#include "sheaf/space.h"

#include "api/api_options.h"
#include "base/file.h"
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
    enum { MOST_DEVICES = 1 << 20 };
    struct opening job = {.graph = graph, .devices = devices};
    *out = NULL;
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

/* When memory runs out, what the call allocated is freed: the space is put back as it was. */
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
    sf_said_assign said = {ops, microbatch, ndevices, devices};
    return say((struct saying){.space = space, .assign = &said, .diag = diag});
}

sf_status sf_order(sf_space *space, sf_task before, sf_task after, sf_diag *diag)
{
    sf_said_order said = {before, after};
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
    struct listing job = {graph, ops, output, diag};
    return sf_guarded(list_factors, &job, diag);
}

struct making {
    const sf_space *space;
    sf_space_options options;
    sf_diag *diag;
    sf_plan *plan;
};

static sf_status make_guarded(void *context)
{
    struct making *job = context;
    const char *schedule = job->options.schedule;
    sf_space_request request = {.recipe = job->options.recipe,
                                .schedule = schedule,
                                .npins = job->options.npins,
                                .pins = job->options.pins,
                                .recompute = job->options.recompute};
    sf_arena arena = {0};
    sf_schedule table;
    sf_mesh mesh;
    sf_status status = SF_OK;
    if (job->options.mesh) {
        status = sf_mesh_parse(sf_str_of(job->options.mesh), &arena, job->diag, &mesh);
        request.mesh = &mesh;
    }
    if (status == SF_OK && schedule && sf_file_is_same(schedule, schedule)) {
        sf_str text;
        status = sf_file_read(schedule, &arena, 0, &text, job->diag);
        if (status == SF_OK)
            status = sf_schedule_read(text, schedule, &arena, &table, job->diag);
        request.schedule = NULL;
        request.table = &table;
    }
    if (status == SF_OK)
        status = sf_space_make(job->space, &request, job->diag, &job->plan);
    if (status == SF_OK) {
        sf_warn_repeated(job->space->graph, job->plan, job->diag);
        sf_warn_stacked(job->space->graph, job->plan, job->diag);
    }
    sf_arena_free(&arena);
    return status;
}

sf_status sf_space_plan(const sf_space *space, const sf_space_options *options, sf_diag *diag,
                        sf_plan **out)
{
    struct making job = {.space = space, .diag = diag};
    *out = NULL;
    SF_TRY(sf_options_take(options, &job.options, sizeof job.options, diag));
    SF_CHECK_OPTIONS(diag, {"npins", job.options.npins});
    SF_TRY(sf_guarded(make_guarded, &job, diag));
    *out = job.plan;
    return SF_OK;
}
