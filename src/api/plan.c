/* Plans: pinned by hand, read and written. */
#include <inttypes.h>
#include <string.h>

#include "api/options.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/output.h"
#include "base/units.h"
#include "front/loose.h"
#include "local/rank.h"
#include "op/op.h"
#include "plan/complete.h"
#include "plan/recipe.h"
#include "plan/recompute.h"
#include "plan/repeated.h"
#include "plan/shrink.h"
#include "run/runner.h"
#include "sheaf/plan.h"

struct pinning {
    const sf_graph *graph;
    sf_pin_options options;
    sf_diag *diag;
    sf_plan *plan;
};

static sf_status start_plan(struct pinning *job, sf_arena *arena)
{
    const sf_pin_options *options = &job->options;
    sf_mesh mesh;
    if (options->mesh && sf_mesh_parse(sf_str_of(options->mesh), arena, job->diag, &mesh) != SF_OK)
        return SF_EUSAGE;
    if (options->mesh && options->ranks && options->ranks != sf_mesh_size(&mesh))
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "the mesh %s has %d ranks, not %d",
                       options->mesh, sf_mesh_size(&mesh), options->ranks);
    if (options->recipe && !options->mesh && options->ranks < 1)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "a recipe needs a mesh or a number of ranks");
    if (options->recipe)
        return sf_recipe_plan(job->graph, options->recipe, options->ranks,
                              options->mesh ? &mesh : NULL, job->diag, &job->plan);
    if (!options->mesh)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "pins need a mesh");
    job->plan = sf_plan_new(job->graph, &mesh);
    return SF_OK;
}

static void take_turns(struct pinning *job)
{
    job->plan->micro_batches = job->options.micro_batches;
    sf_plan_co_shard(job->plan, job->options.co_shard, job->options.co_shards);
}

static sf_status make_plan(void *context)
{
    struct pinning *job = context;
    sf_arena arena = {0};
    sf_status status = start_plan(job, &arena);
    if (status == SF_OK)
        status = sf_plan_add_pins(job->plan, job->options.npins, job->options.pins, job->diag);
    if (status == SF_OK)
        status = sf_plan_complete(job->graph, job->plan, job->diag);
    if (status == SF_OK)
        take_turns(job);
    if (status == SF_OK)
        status = sf_plan_recompute(job->graph, job->plan, job->options.recompute, job->diag);
    if (status == SF_OK) {
        sf_warn_strangers(job->graph, job->diag);
        sf_warn_loose(job->graph, job->diag);
        sf_warn_repeated(job->graph, job->plan, job->diag);
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

static sf_status check_bytes(const struct checking *job, const sf_local *local)
{
    if (job->memory == 0)
        return SF_OK;
    int64_t bytes = sf_rank_bytes(local, sf_engine_target(NULL));
    if (sf_rank_fits(bytes, job->memory))
        return SF_OK;
    return sf_fail(job->diag, SF_EWRONG, SF_NOWHERE, "a rank needs %s, and there are %s",
                   sf_text_bytes((double)bytes).at, sf_text_bytes((double)job->memory).at);
}

static sf_status check_plan(void *context)
{
    const struct checking *job = context;
    sf_local *first;
    SF_TRY(sf_plan_expect(job->plan, job->graph, job->diag));
    SF_TRY(sf_local_new(job->graph, job->plan, 0, job->diag, &first));
    sf_status status = sf_check_ranks(first, NULL, job->diag);
    if (status == SF_OK)
        status = check_bytes(job, first);
    sf_local_free(first);
    return status;
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
