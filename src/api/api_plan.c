/* Plans: pinned by hand, read and written. */
#include <inttypes.h>
#include <string.h>

#include "api/api_spec.h"
#include "api/cluster_price.h"
#include "base/boundary.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/output.h"
#include "base/units.h"
#include "front/lost_state.h"
#include "local/rank.h"
#include "op/op.h"
#include "pass/plan_passes.h"
#include "plan/pin.h"
#include "plan/recipe/recipe.h"
#include "plan/recompute_policy.h"
#include "plan/replicated_compute.h"
#include "plan/shrink/shrink.h"
#include "plan/stacked_layers.h"
#include "run/runner.h"
#include "search/price/price_pipeline.h"
#include "search/specs/spec_plan.h"

struct pinning {
    const sf_graph *graph;
    sf_plan_spec said;
    sf_diag *diag;
    sf_plan *plan;
};

static sf_status pin_step(void *context)
{
    struct pinning *job = context;
    SF_TRY(sf_plan_of_spec(job->graph, &job->said, NULL, NULL, job->diag, &job->plan));
    sf_warn_strangers(job->graph, job->diag);
    sf_warn_loose(job->graph, job->diag);
    sf_warn_repeated(job->graph, job->plan, job->diag);
    sf_warn_stacked(job->graph, job->plan, job->diag);
    sf_warn_kept_by_loops(job->graph, job->plan, job->diag);
    return SF_OK;
}

sf_status sf_pin_step(const sf_graph *graph, const sf_plan_spec *spec, sf_diag *diag, sf_plan **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, graph, out);
    struct pinning job = {.graph = graph, .diag = diag};
    SF_TRY(sf_spec_take(spec, diag, &job.said));
    SF_TRY(sf_guarded(pin_step, &job, diag));
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

/* On one line. */
static const char *shown_name(const char *name, sf_arena *arena)
{
    size_t size = sf_show_text(sf_str_of(name), NULL, 0) + 1;
    char *out = SF_ARRAY(arena, size, char);
    sf_show_text(sf_str_of(name), out, size);
    return out;
}

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
            sf_buf_printf(&out, "%s  %s\n", shown_name(names.values[v], &arena),
                          sf_type_text(type, text));
    }
    for (const sf_named *name = names.all; name; name = name->next)
        if (names.is_scope[name->first])
            sf_buf_printf(&out, "%s/\n", shown_name(name->name, &arena));
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

/* The passes of the plan work, and, after them, pipeline ranks do not wait for each other for ever. */
static sf_status check_ends(const struct checking *job)
{
    sf_group_runs runs;
    if (!job->plan->pipeline && !*job->plan->passes.list)
        return SF_OK;
    sf_status status =
        sf_group_runs_new(job->graph, job->plan, sf_engine_target(NULL), NULL, job->diag, &runs);
    sf_group_runs_free(&runs);
    return status;
}

static sf_status check_plan(void *context)
{
    const struct checking *job = context;
    sf_price price;
    sf_cluster *cluster;
    SF_TRY(sf_plan_expect(job->plan, job->graph, job->diag));
    SF_TRY(sf_check_plan(job->graph, job->plan, NULL, sf_engine_target(NULL), NULL, job->diag));
    SF_TRY(check_ends(job));
    if (job->memory == 0)
        return SF_OK;
    SF_TRY(sf_plan_passes_cluster(job->plan, job->diag, &cluster));
    sf_status status = sf_cluster_price(job->graph, job->plan, cluster, job->diag, &price);
    sf_cluster_free(cluster);
    if (status != SF_OK)
        return status;
    if (sf_rank_fits(price.memory, job->memory))
        return SF_OK;
    return sf_fail(job->diag, SF_EMISMATCH, SF_NOWHERE,
                   "a rank takes %s, with the passes of the plan, and the limit is %s",
                   sf_text_bytes((double)price.memory).at, sf_text_bytes((double)job->memory).at);
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
