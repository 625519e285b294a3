/* Plans: pinned by hand, read and written. */
#include <inttypes.h>
#include <string.h>

#include "api/api_options.h"
#include "api/shard_state.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/output.h"
#include "base/units.h"
#include "front/lost_state.h"
#include "local/rank.h"
#include "op/op.h"
#include "plan/co_shard.h"
#include "plan/pipeline/pipeline_request.h"
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
    sf_pin_options options;
    sf_diag *diag;
    sf_pipeline pipeline;        /* where stages are asked for */
    sf_state_split split;        /* how state is in pieces, */
    char recipe[SF_RECIPE_TEXT]; /* by this recipe */
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

/* A mesh with an axis for the groups of a pipeline: that which the recipe wants for the ranks of a group comes behind it.
 * The names of its axes are the recipe's, or the arena's. */
static sf_status find_mesh_of_groups(struct pinning *job, uint32_t groups, sf_arena *arena,
                                     sf_mesh *out)
{
    const sf_pin_options *options = &job->options;
    int ranks = options->ranks / (int)groups;
    sf_mesh none = {0};
    if (options->ranks % (int)groups != 0)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "%d ranks do not make %u equal groups for the stages", options->ranks,
                       groups);
    if (!options->recipe || ranks == 0)
        return put_pipe_before(&none, groups, job->diag, out);
    sf_plan *one;
    SF_TRY(sf_recipe_plan(job->graph, options->recipe, ranks, NULL, job->diag, &one));
    for (int a = 0; a < one->mesh.naxes; a++)
        one->mesh.axes[a].name =
            sf_arena_string(arena, one->mesh.axes[a].name, strlen(one->mesh.axes[a].name));
    sf_status status = put_pipe_before(&one->mesh, groups, job->diag, out);
    sf_plan_free(one);
    return status;
}

static sf_status find_mesh(struct pinning *job, sf_arena *arena, sf_mesh *out)
{
    const sf_pin_options *options = &job->options;
    if (!options->mesh)
        return find_mesh_of_groups(job, job->pipeline.schedule.pipe.ngroups, arena, out);
    if (sf_mesh_parse(sf_str_of(options->mesh), arena, job->diag, out) != SF_OK)
        return SF_EUSAGE;
    if (options->ranks && options->ranks != sf_mesh_size(out))
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "the mesh %s has %d ranks, not %d",
                       options->mesh, sf_mesh_size(out), options->ranks);
    return SF_OK;
}

static sf_status start_plan(struct pinning *job, sf_arena *arena)
{
    const sf_pin_options *options = &job->options;
    sf_mesh mesh = {0};
    if (options->mesh || options->stages)
        SF_TRY(find_mesh(job, arena, &mesh));
    else if (options->recipe && options->ranks < 1)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "a recipe needs a mesh or a number of ranks");
    job->pipeline.axis = sf_mesh_axis(&mesh, sf_str_of(SF_PIPE_AXIS));
    if (options->recipe && !(options->stages && mesh.naxes == 1))
        return sf_recipe_plan(job->graph, options->recipe, options->ranks,
                              mesh.naxes > 0 ? &mesh : NULL, job->diag, &job->plan);
    if (mesh.naxes == 0)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "pins need a mesh");
    job->plan = sf_plan_new(job->graph, &mesh);
    return SF_OK;
}

/* A name, or a file with a table. */
static sf_status find_pipeline(struct pinning *job, sf_arena *arena)
{
    const sf_pin_options *options = &job->options;
    sf_pipeline_request request = {.stages = options->stages,
                                   .schedule = options->schedule,
                                   .microbatches = (uint32_t)options->micro_batches,
                                   .recomputed =
                                       sf_recomputed_by(job->graph, options->recompute, arena)};
    sf_schedule table;
    if (options->schedule && sf_file_is_same(options->schedule, options->schedule)) {
        sf_str text;
        SF_TRY(sf_file_read(options->schedule, arena, 0, &text, job->diag));
        SF_TRY(sf_schedule_read(text, options->schedule, arena, &table, job->diag));
        request.table = &table;
        if (request.microbatches <= 1)
            request.microbatches = table.pipe.nmicrobatches;
    }
    return sf_pipeline_by(job->graph, &request, arena, job->diag, &job->pipeline);
}

static void take_turns(struct pinning *job)
{
    job->plan->micro_batches = job->options.micro_batches;
    sf_plan_co_shard(job->plan, job->options.co_shard, job->options.co_shards);
}

static sf_status take_state(struct pinning *job)
{
    SF_TRY(sf_read_shard_state(job->options.shard_state, job->diag, &job->split));
    if (job->split == SF_STATE_AS_RECIPE)
        return SF_OK;
    SF_TRY(sf_split_state_recipe(job->options.recipe, job->split, job->diag, job->recipe));
    job->options.recipe = job->recipe;
    return SF_OK;
}

static sf_status make_plan(void *context)
{
    struct pinning *job = context;
    sf_arena arena = {0};
    sf_status status = SF_OK;
    if (job->options.stages)
        status = find_pipeline(job, &arena);
    else if (job->options.schedule)
        status = sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                         "a schedule is of a pipeline: say its --stages, too");
    if (status == SF_OK)
        status = start_plan(job, &arena);
    if (status == SF_OK)
        status = sf_plan_add_pins(job->plan, job->options.npins, job->options.pins, job->diag);
    if (status == SF_OK)
        status = sf_plan_propagate(job->graph, job->plan, job->diag);
    if (status == SF_OK)
        take_turns(job);
    if (status == SF_OK && job->options.stages)
        status = sf_plan_set_pipeline(job->plan, job->graph, &job->pipeline, job->diag);
    if (status == SF_OK && job->options.stages)
        status = sf_plan_split_sets(job->graph, job->plan, job->diag);
    if (status == SF_OK)
        status = sf_plan_recompute(job->graph, job->plan, job->options.recompute, job->diag);
    if (status == SF_OK && job->split != SF_STATE_AS_RECIPE)
        sf_plan_set_passes(
            job->plan, &(sf_plan_passes){.list = sf_split_state_passes(job->split), .cluster = ""});
    if (status == SF_OK) {
        sf_warn_strangers(job->graph, job->diag);
        sf_warn_loose(job->graph, job->diag);
        sf_warn_repeated(job->graph, job->plan, job->diag);
        sf_warn_stacked(job->graph, job->plan, job->diag);
        sf_warn_kept_by_loops(job->graph, job->plan, job->diag);
    }
    sf_arena_free(&arena);
    if (status != SF_OK)
        sf_plan_free(job->plan);
    return status;
}

sf_status sf_pin_step(const sf_graph *graph, const sf_pin_options *options, sf_diag *diag,
                      sf_plan **out)
{
    struct pinning job = {.graph = graph, .diag = diag};
    *out = NULL;
    SF_TRY(sf_options_take(options, &job.options, sizeof job.options, diag));
    SF_CHECK_OPTIONS(diag, {"ranks", job.options.ranks}, {"npins", job.options.npins},
                     {"micro_batches", job.options.micro_batches},
                     {"co_shards", job.options.co_shards});
    SF_TRY(take_state(&job));
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
    struct shrinking job = {.graph = graph, .plan = plan, .diag = diag};
    SF_TRY(sf_guarded(shrink_plan, &job, diag));
    *small = job.small;
    *small_plan = job.small_plan;
    *about = job.about;
    return SF_OK;
}

int sf_plan_ranks(const sf_plan *plan)
{
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
