/* Plans: pinned by hand, read and written. */
#include <inttypes.h>
#include <string.h>

#include "api/api_spec.h"
#include "api/shard_state.h"
#include "base/boundary.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/output.h"
#include "base/units.h"
#include "front/lost_state.h"
#include "local/rank.h"
#include "op/op.h"
#include "plan/co_shard.h"
#include "plan/pipeline_request.h"
#include "plan/propagate.h"
#include "plan/recipe/recipe.h"
#include "plan/recipe/shared_stages.h"
#include "plan/recompute_policy.h"
#include "plan/replicated_compute.h"
#include "plan/shrink/shrink.h"
#include "plan/stacked_layers.h"
#include "run/runner.h"
#include "search/price/price_pipeline.h"

struct pinning {
    const sf_graph *graph;
    sf_plan_spec said;
    sf_spec spec; /* the same, parsed */
    sf_diag *diag;
    bool staged;
    sf_pipeline pipeline;        /* if the specification has stages */
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
    sf_pipeline_costs costs = {.recomputed =
                                   sf_recomputed_by(job->graph, &job->spec.recompute, arena)};
    return sf_pipeline_by(job->graph, &job->spec, &costs, arena, job->diag, &job->pipeline);
}

/* Refuses values that only a search can choose. */
static sf_status read_spec(struct pinning *job, sf_arena *arena)
{
    sf_spec *spec = &job->spec;
    SF_TRY(sf_spec_read(&job->said, arena, job->diag, spec));
    job->staged = spec->stages.kind == SF_STAGES_COUNT || spec->stages.kind == SF_STAGES_LIST;
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

static void warn(const struct pinning *job)
{
    sf_warn_strangers(job->graph, job->diag);
    sf_warn_loose(job->graph, job->diag);
    sf_warn_repeated(job->graph, job->plan, job->diag);
    sf_warn_stacked(job->graph, job->plan, job->diag);
    sf_warn_kept_by_loops(job->graph, job->plan, job->diag);
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
    return sf_spec_finish(spec, sf_split_state_passes(spec->shard_state), NULL, job->diag, plan);
}

static sf_status make_plan(void *context)
{
    struct pinning *job = context;
    sf_arena arena = {0};
    sf_status status = read_spec(job, &arena);
    if (status == SF_OK && job->staged)
        status = find_pipeline(job, &arena);
    if (status == SF_OK)
        status = start_plan(job, &arena);
    if (status == SF_OK)
        status = fill_plan(job);
    if (status == SF_OK)
        warn(job);
    else
        sf_plan_free(job->plan);
    sf_arena_free(&arena);
    return status;
}

sf_status sf_pin_step(const sf_graph *graph, const sf_plan_spec *spec, sf_diag *diag, sf_plan **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, graph, out);
    struct pinning job = {.graph = graph, .diag = diag};
    SF_TRY(sf_spec_take(spec, diag, &job.said));
    SF_TRY(sf_guarded(make_plan, &job, diag));
    *out = job.plan;
    return SF_OK;
}

struct filing {
    const sf_graph *graph;
    const char *path;        /* to read, */
    const sf_output *output; /* or to write to */
    sf_diag *diag;
    const sf_plan *saved;
    sf_plan *loaded;
};

static sf_status write_names(void *context)
{
    struct filing *job = context;
    sf_arena arena = {0};
    sf_buf out = {0};
    sf_names names = sf_names_of(job->graph, &arena);
    for (sf_value v = 0; v < job->graph->nvalues; v++) {
        const sf_type *type = sf_type_of(job->graph, v);
        char text[SF_TYPE_TEXT];
        if (*names.values[v] && !names.is_scope[v])
            sf_buf_printf(&out, "%s  %s\n", names.values[v], sf_type_text(type, text));
    }
    for (const sf_named *name = names.all; name; name = name->next)
        if (names.is_scope[name->first])
            sf_buf_printf(&out, "%s/\n", name->name);
    sf_status status = sf_output_report(job->output, &out, job->diag);
    sf_buf_free(&out);
    sf_arena_free(&arena);
    return status;
}

sf_status sf_pin_names(const sf_graph *graph, const sf_output *output, sf_diag *diag)
{
    SF_NEED(diag, graph);
    struct filing job = {.graph = graph, .output = output, .diag = diag};
    return sf_guarded(write_names, &job, diag);
}

static sf_status load_plan(void *context)
{
    struct filing *job = context;
    sf_arena arena = {0};
    sf_str text;
    sf_status status = sf_file_read(job->path, &arena, 0, &text, job->diag);
    if (status == SF_OK)
        status = sf_plan_read(text, job->path, job->graph, job->diag, &job->loaded);
    sf_arena_free(&arena);
    return status;
}

sf_status sf_plan_load(const sf_graph *graph, const char *path, sf_diag *diag, sf_plan **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, graph, path, out);
    struct filing job = {.graph = graph, .path = path, .diag = diag};
    SF_TRY(sf_guarded(load_plan, &job, diag));
    *out = job.loaded;
    return SF_OK;
}

static sf_status save_plan(void *context)
{
    struct filing *job = context;
    sf_buf text = {0};
    SF_TRY(sf_plan_expect(job->saved, job->graph, job->diag));
    const char *path = job->output && job->output->path ? job->output->path : "-";
    sf_plan_write(job->saved, job->graph, path, &text);
    sf_status status = sf_output_write(job->output, &text, job->diag);
    sf_buf_free(&text);
    return status;
}

sf_status sf_plan_save(const sf_plan *plan, const sf_graph *graph, const sf_output *output,
                       sf_diag *diag)
{
    SF_NEED(diag, plan, graph);
    struct filing job = {.graph = graph, .output = output, .diag = diag, .saved = plan};
    return sf_guarded(save_plan, &job, diag);
}

struct checking {
    const sf_graph *graph;
    const sf_plan *plan;
    int64_t memory;
    sf_diag *diag;
};

/* Groups of a pipeline do not wait for each other for ever. */
static sf_status check_ends(const struct checking *job)
{
    sf_group_runs runs;
    if (!job->plan->pipeline)
        return SF_OK;
    sf_status status =
        sf_group_runs_new(job->graph, job->plan, sf_engine_target(NULL), NULL, job->diag, &runs);
    sf_group_runs_free(&runs);
    return status;
}

static sf_status check_plan(void *context)
{
    const struct checking *job = context;
    int64_t bytes;
    SF_TRY(sf_plan_expect(job->plan, job->graph, job->diag));
    SF_TRY(sf_check_plan(job->graph, job->plan, NULL, sf_engine_target(NULL),
                         job->memory > 0 ? &bytes : NULL, job->diag));
    SF_TRY(check_ends(job));
    if (job->memory == 0 || sf_rank_fits(bytes, job->memory))
        return SF_OK;
    return sf_fail(job->diag, SF_EMISMATCH, SF_NOWHERE, "a rank needs %s, and there are %s",
                   sf_text_bytes((double)bytes).at, sf_text_bytes((double)job->memory).at);
}

sf_status sf_plan_check(const sf_plan *plan, const sf_graph *graph, int64_t memory, sf_diag *diag)
{
    SF_NEED(diag, plan, graph);
    struct checking job = {graph, plan, memory, diag};
    return sf_guarded(check_plan, &job, diag);
}

struct shrinking {
    const sf_graph *graph;
    const sf_plan *plan;
    sf_diag *diag;
    sf_graph *small;
    sf_plan *small_plan;
    const char *about;
};

static sf_status shrink_plan(void *context)
{
    struct shrinking *job = context;
    SF_TRY(sf_plan_expect(job->plan, job->graph, job->diag));
    return sf_shrink(job->graph, job->plan, job->diag, &job->small, &job->small_plan, &job->about);
}

sf_status sf_plan_shrink(const sf_plan *plan, const sf_graph *graph, sf_diag *diag,
                         sf_graph **small, sf_plan **small_plan, const char **about)
{
    SF_CLEAR(small);
    SF_CLEAR(small_plan);
    SF_NEED(diag, plan, graph, small, small_plan, about);
    struct shrinking job = {.graph = graph, .plan = plan, .diag = diag};
    SF_TRY(sf_guarded(shrink_plan, &job, diag));
    *small = job.small;
    *small_plan = job.small_plan;
    *about = job.about;
    return SF_OK;
}

int sf_plan_ranks(const sf_plan *plan)
{
    SF_NEED_OR(0, plan);
    return sf_mesh_size(&plan->mesh);
}

const char *sf_recipe_name(int index)
{
    const sf_recipe *recipe = sf_recipe_nth(index);
    return recipe ? recipe->name : NULL;
}

const char *sf_recipe_about(int index)
{
    const sf_recipe *recipe = sf_recipe_nth(index);
    return recipe ? recipe->about : NULL;
}
