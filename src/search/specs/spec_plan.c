#include "search/specs/spec_plan.h"

#include <string.h>

#include "pass/plan_passes.h"
#include "plan/co_shard.h"
#include "plan/pipeline_request.h"
#include "plan/propagate.h"
#include "plan/recipe/recipe.h"
#include "plan/recipe/shard_state.h"
#include "plan/recipe/shared_stages.h"
#include "plan/recompute_policy.h"

struct pinning {
    const sf_graph *graph;
    sf_plan_spec said;
    sf_spec spec; /* the same, parsed */
    sf_diag *diag;
    bool staged;
    sf_pipeline pipeline;        /* if the specification has stages */
    const double *time;          /* by node, that these are cut by; or NULL */
    const sf_cluster *cluster;   /* whose costs passes go by; or NULL */
    char recipe[SF_RECIPE_TEXT]; /* that shards state as the specification says */
    sf_plan *plan;
};

/* The mesh with the axis of groups before its own. */
static sf_status put_pipe_before(const sf_mesh *mesh, uint32_t groups, sf_diag *diag, sf_mesh *out)
{
    if (mesh->naxes == SF_MAX_AXES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a mesh has at most %d axes", SF_MAX_AXES);
    *out = (sf_mesh){1 + mesh->naxes, {{SF_PIPE_AXIS, (int)groups}}};
    memcpy(out->axes + 1, mesh->axes, (size_t)mesh->naxes * sizeof *mesh->axes);
    return SF_OK;
}

/* A mesh with an axis for the groups of a pipeline; the axes that the recipe wants for the ranks of a group follow it. The names
 * of its axes are the recipe's, or the arena's. */
static sf_status find_mesh_of_groups(struct pinning *job, uint32_t groups, sf_arena *arena,
                                     sf_mesh *out)
{
    const sf_spec *spec = &job->spec;
    int ranks = spec->ranks / (int)groups;
    sf_mesh none = {0};
    if (spec->ranks % (int)groups != 0)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "%d ranks do not make %u equal groups for the stages", spec->ranks, groups);
    if (!spec->recipe || ranks == 0)
        return put_pipe_before(&none, groups, job->diag, out);
    sf_plan *one;
    SF_TRY(sf_recipe_plan(job->graph, spec->recipe, ranks, NULL, job->diag, &one));
    for (int a = 0; a < one->mesh.naxes; a++)
        one->mesh.axes[a].name =
            sf_arena_string(arena, one->mesh.axes[a].name, strlen(one->mesh.axes[a].name));
    sf_status status = put_pipe_before(&one->mesh, groups, job->diag, out);
    sf_plan_free(one);
    return status;
}

static sf_status find_mesh(struct pinning *job, sf_arena *arena, sf_mesh *out)
{
    const sf_spec *spec = &job->spec;
    if (!spec->mesh)
        return find_mesh_of_groups(job, job->pipeline.schedule.pipe.ngroups, arena, out);
    *out = *spec->mesh;
    if (spec->ranks && spec->ranks != sf_mesh_size(out))
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "the mesh %s has %d ranks, not %d",
                       job->said.mesh, sf_mesh_size(out), spec->ranks);
    return SF_OK;
}

/* Without a mesh, pins along one axis have all ranks there. */
static sf_status find_only_axis(const struct pinning *job, sf_arena *arena, sf_mesh *out)
{
    sf_str axis = sf_str_of("model");
    for (int p = 0, named = 0; p < job->spec.npins; p++) {
        sf_str name = sf_pin_axis_name(job->spec.pins[p]);
        if (name.length == 0)
            continue;
        if (named++ > 0 && !sf_str_equal(name, axis))
            return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                           "pins need a mesh: they are along %.*s and %.*s", SF_STR_ARGS(axis),
                           SF_STR_ARGS(name));
        axis = name;
    }
    *out = (sf_mesh){.naxes = 1};
    out->axes[0] = (sf_axis){sf_arena_string(arena, axis.at, axis.length), job->spec.ranks};
    return SF_OK;
}

static sf_status refuse_no_ranks(const struct pinning *job, const char *what)
{
    sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "%s a mesh or a number of ranks", what);
    return sf_hint(job->diag, "say --ranks 4, or --mesh data=4; a schedule in Lua says sch:mesh");
}

static sf_status start_plan(struct pinning *job, sf_arena *arena)
{
    const sf_spec *spec = &job->spec;
    sf_mesh mesh = {0};
    if (spec->mesh || job->staged)
        SF_TRY(find_mesh(job, arena, &mesh));
    else if (spec->recipe && spec->ranks < 1)
        return refuse_no_ranks(job, "a recipe needs");
    job->pipeline.axis = sf_mesh_axis(&mesh, sf_str_of(SF_PIPE_AXIS));
    if (spec->recipe && !(job->staged && mesh.naxes == 1))
        return sf_recipe_plan(job->graph, spec->recipe, spec->ranks, mesh.naxes > 0 ? &mesh : NULL,
                              job->diag, &job->plan);
    if (mesh.naxes == 0 && spec->ranks < 1)
        return refuse_no_ranks(job, "pins need");
    if (mesh.naxes == 0)
        SF_TRY(find_only_axis(job, arena, &mesh));
    job->plan = sf_plan_new(job->graph, &mesh);
    return SF_OK;
}

static sf_status find_pipeline(struct pinning *job, sf_arena *arena)
{
    sf_pipeline_costs costs = {
        .time = job->time, .recomputed = sf_recomputed_by(job->graph, &job->spec.recompute, arena)};
    return sf_pipeline_by(job->graph, &job->spec, &costs, arena, job->diag, &job->pipeline);
}

/* Refuses values that only a search can choose. */
static sf_status read_spec(struct pinning *job, sf_arena *arena)
{
    sf_spec *spec = &job->spec;
    SF_TRY(sf_spec_read(&job->said, arena, job->diag, spec));
    bool is_whole = spec->stages.kind == SF_STAGES_COUNT && spec->stages.count == 1;
    job->staged =
        !is_whole && (spec->stages.kind == SF_STAGES_COUNT || spec->stages.kind == SF_STAGES_LIST);
    if (is_whole && !spec->mesh && spec->ranks == 0)
        spec->ranks = 1;
    if (!job->staged && (spec->schedule || spec->table))
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "a schedule is of a pipeline: say its --stages, too");
    if (spec->recompute.kind == SF_RECOMPUTE_AUTO)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "recompute \"auto\" is for a search: a pinned plan needs to know what is "
                       "recomputed");
    if (spec->shard_state == SF_STATE_AS_RECIPE)
        return SF_OK;
    SF_TRY(sf_split_state_recipe(spec->recipe, spec->shard_state, job->diag, job->recipe));
    spec->recipe = job->recipe;
    return SF_OK;
}

static sf_status fill_plan(struct pinning *job)
{
    const sf_spec *spec = &job->spec;
    sf_plan *plan = job->plan;
    SF_TRY(sf_plan_add_pins(plan, spec->npins, spec->pins, job->diag));
    SF_TRY(sf_plan_propagate(job->graph, plan, job->diag));
    plan->micro_batches = spec->micro_batches;
    sf_plan_co_shard(plan, spec->co_shard.count, spec->co_shard.at);
    if (job->staged) {
        SF_TRY(sf_plan_set_pipeline(plan, job->graph, &job->pipeline, job->diag));
        SF_TRY(sf_plan_split_sets(job->graph, plan, job->diag));
    }
    SF_TRY(sf_plan_recompute(job->graph, plan, &spec->recompute, job->diag));
    if (spec->has_kernels)
        plan->kernels = spec->kernels;
    const char *passes = spec->passes ? spec->passes : sf_split_state_passes(spec->shard_state);
    return passes ? sf_plan_name_passes(plan, passes, job->cluster, spec->memory, job->diag)
                  : SF_OK;
}

sf_status sf_plan_of_spec(const sf_graph *graph, const sf_plan_spec *said, const double *time,
                          const sf_cluster *cluster, sf_diag *diag, sf_plan **out)
{
    struct pinning job = {
        .graph = graph, .said = *said, .time = time, .cluster = cluster, .diag = diag};
    sf_arena arena = {0};
    sf_status status = read_spec(&job, &arena);
    if (status == SF_OK && job.staged)
        status = find_pipeline(&job, &arena);
    if (status == SF_OK)
        status = start_plan(&job, &arena);
    if (status == SF_OK)
        status = fill_plan(&job);
    if (status != SF_OK)
        sf_plan_free(job.plan);
    sf_arena_free(&arena);
    *out = status == SF_OK ? job.plan : NULL;
    return status;
}
