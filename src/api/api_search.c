/* The search for a plan. */
#include <math.h>
#include <string.h>

#include "api/api_options.h"
#include "api/api_spec.h"
#include "base/guard.h"
#include "base/machine.h"
#include "base/output.h"
#include "base/units.h"
#include "front/lost_state.h"
#include "ir/clone.h"
#include "op/flops.h"
#include "op/op.h"
#include "pass/pass.h"
#include "pass/plan_passes.h"
#include "plan/recipe/recipe.h"
#include "plan/recipe/shard_state.h"
#include "plan/recompute_policy.h"
#include "plan/replicated_compute.h"
#include "plan/stacked_layers.h"
#include "run/runner.h"
#include "search/device_subsets.h"
#include "search/specs/choice.h"
#include "sheaf/pass.h"

struct job {
    const sf_graph *graph;
    sf_plan_spec said;
    sf_spec spec; /* the same, parsed */
    sf_plan_options options;
    double began;
    sf_threads *threads;
    sf_diag *diag;
    sf_plan *plan;
};

static sf_status find_limit(const struct job *job, sf_arena *arena, int64_t *out)
{
    sf_costs *costs;
    int devices = job->options.cluster->ndevices;
    SF_TRY(sf_costs_new(job->options.cluster, 1, &devices, 0, arena, job->diag, &costs));
    *out = job->spec.memory > 0 ? job->spec.memory : sf_costs_memory(costs);
    return SF_OK;
}

/* What is reserved is the same as a limit on memory: passes keep to it as well, and the plan says so. */
static sf_status take_reserve(struct job *job)
{
    const sf_cluster *cluster = job->options.cluster;
    int64_t reserve = job->options.reserve, memory = cluster->kinds[cluster->nodes[0].kind].memory;
    if (reserve == 0) {
        job->spec.memory = sf_cluster_memory_limit(cluster, job->spec.memory, job->diag);
        return SF_OK;
    }
    if (job->spec.memory > 0)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "a limit on memory and a reserve exclude each other");
    for (int r = 1; r < cluster->nruns; r++)
        if (cluster->kinds[cluster->nodes[r].kind].memory != memory) {
            sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                    "devices of the cluster differ in memory, so one reserve does not do");
            return sf_hint(job->diag, "a cluster file says what each kind of device reserves");
        }
    if (reserve >= memory)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "the reserve is to be less than the %s of a device",
                       sf_text_bytes((double)memory).at);
    job->spec.memory = reserve < 0 ? memory : memory - reserve;
    return SF_OK;
}

/* A user who disables passes wants no offload either. */
static sf_status take_passes(const struct job *job, sf_arena *arena, sf_search_options *out)
{
    sf_pass_list list;
    sf_state_split split = job->spec.shard_state;
    out->full_state = split != SF_STATE_AS_RECIPE;
    out->between = split == SF_STATE_BETWEEN;
    out->recipes_only = out->recipes_only || out->full_state;
    if (!out->passes)
        out->passes = sf_split_state_passes(split);
    out->on_host = !out->passes;
    if (!out->passes)
        return SF_OK;
    SF_TRY(sf_pass_list_load(out->passes, arena, job->diag, &list));
    out->on_host = list.count > 0;
    if (list.count == 0)
        out->passes = NULL;
    return SF_OK;
}

/* The pins of a recipe, on the mesh that is said, after those that are said. */
static sf_status take_recipe(const struct job *job, sf_arena *arena, sf_search_options *out)
{
    const sf_spec *spec = &job->spec;
    sf_plan *plan;
    if (!spec->recipe)
        return SF_OK;
    if (!spec->mesh)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "a search with the pins of a recipe needs to know its mesh: say it, too");
    SF_TRY(sf_recipe_plan(job->graph, spec->recipe, 0, spec->mesh, job->diag, &plan));
    const char **pins = SF_ARRAY(arena, spec->npins + plan->npins + 1, const char *);
    for (int p = 0; p < spec->npins; p++)
        pins[p] = spec->pins[p];
    for (int p = 0; p < plan->npins; p++)
        pins[spec->npins + p] =
            sf_arena_string(arena, plan->pins[p].text, strlen(plan->pins[p].text));
    out->pins = pins;
    out->npins = spec->npins + plan->npins;
    sf_plan_free(plan);
    return SF_OK;
}

/* A search cuts stages itself, by number or by the scopes that begin them. */
static sf_status take_stages(const struct job *job, sf_search_options *out)
{
    const sf_stages_spec *stages = &job->spec.stages;
    if (stages->groups)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "stages with groups of devices are for sheaf pin; a search takes a number, "
                       "or scopes that begin stages");
    out->stages = (int)stages->count;
    out->stage_scopes = stages->scopes ? stages : NULL;
    out->only_stages = job->spec.schedule != NULL;
    if (job->spec.table) {
        sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "schedule \"%.100s\" is a file",
                job->said.schedule);
        return sf_hint(job->diag,
                       "a table of tasks is for sheaf pin, which takes its order as it is");
    }
    if (stages->kind == SF_STAGES_COUNT && stages->count == 1 && job->spec.schedule)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                       "a schedule is of a pipeline, which has 2 stages or more");
    return SF_OK;
}

/* 0: not said; 1: none. Of a list by scopes the entries say how many. */
static int count_chunks(const sf_co_shard_spec *said)
{
    bool is_list = said->count > 1 || (said->count == 1 && *said->at[0].in);
    return !said->is_said ? 0 : said->count == 0 ? 1 : is_list ? 2 : said->at[0].chunks;
}

static sf_status translate(struct job *job, sf_arena *arena, sf_search_options *out)
{
    const sf_plan_options *options = &job->options;
    const sf_spec *spec = &job->spec;
    SF_TRY(sf_spec_read(&job->said, arena, job->diag, &job->spec));
    SF_TRY(take_reserve(job));
    if (spec->ranks > 0 && spec->ranks != options->cluster->ndevices)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "the cluster has %d devices, not %d",
                       options->cluster->ndevices, spec->ranks);
    bool is_open =
        spec->recompute.kind == SF_RECOMPUTE_UNSAID || spec->recompute.kind == SF_RECOMPUTE_AUTO;
    *out = (sf_search_options){
        .cluster = options->cluster,
        .target = sf_cluster_target(options->cluster),
        .mesh = spec->mesh,
        .limited = spec->memory > 0,
        .npins = spec->npins,
        .pins = spec->pins,
        .margin = options->margin,
        .level = options->level,
        .deadline = options->seconds > 0 ? job->began + options->seconds : 0,
        .recipes_only = options->recipes,
        .recompute = is_open ? NULL : sf_recompute_text(&spec->recompute, arena),
        .as_text = spec->recompute.kind == SF_RECOMPUTE_UNSAID,
        .micro_batches = spec->micro_batches,
        .co_shard = &spec->co_shard,
        .co_shards = count_chunks(&spec->co_shard),
        .schedule = spec->schedule,
        .passes = spec->passes,
        .threads = job->threads,
        .audience = {options->listener, options->context, options->interrupt}};
    SF_TRY(take_stages(job, out));
    SF_TRY(take_passes(job, arena, out));
    SF_TRY(take_recipe(job, arena, out));
    return find_limit(job, arena, &out->memory);
}

static void name_origin(const sf_graph *graph, const sf_plan_options *options, sf_plan *plan)
{
    const sf_reference *origin = &options->cluster->origin;
    if (options->step_file && !graph->origin.path)
        plan->predicted->step =
            sf_arena_string(&plan->arena, options->step_file, strlen(options->step_file));
    if (options->cluster_name)
        plan->predicted->cluster =
            sf_arena_string(&plan->arena, options->cluster_name, strlen(options->cluster_name));
    plan->predicted->cluster_file = *origin;
    if (origin->path)
        plan->predicted->cluster_file.path =
            sf_arena_string(&plan->arena, origin->path, strlen(origin->path));
}

static sf_status search(void *context)
{
    struct job *job = context;
    const sf_output *wanted = job->options.misfit;
    sf_arena arena = {0};
    sf_search_options options;
    sf_choice_rules rules;
    sf_buf misfit = {0};
    sf_graph *own = NULL;
    sf_status status = translate(job, &arena, &options);
    if (status == SF_OK && sf_choice_rules_read(&job->said, &rules)) {
        rules.said.memory = job->spec.memory;
        options.rules = &rules;
    }
    if (status == SF_OK && job->spec.has_kernels) {
        own = sf_graph_clone(job->graph);
        own->kernels = job->spec.kernels;
    }
    if (status == SF_OK)
        status = sf_choose_on_parts(own ? own : job->graph, &options, wanted ? &misfit : NULL,
                                    job->diag, &job->plan);
    if (status == SF_OK && *job->plan->passes.list)
        status = sf_plan_name_passes(job->plan, job->plan->passes.list, job->options.cluster,
                                     job->plan->passes.memory, job->diag);
    if (status == SF_OK) {
        name_origin(job->graph, &job->options, job->plan);
        sf_warn_strangers(job->graph, job->diag);
        sf_warn_unknown_trips(job->graph, job->diag);
        sf_warn_loose(job->graph, job->diag);
        sf_warn_repeated(job->graph, job->plan, job->diag);
        sf_warn_stacked(job->graph, job->plan, job->diag);
        sf_warn_kept_by_loops(job->graph, job->plan, job->diag);
    }
    if (misfit.length > 0) {
        sf_status written = sf_output_write(wanted, &misfit, job->diag);
        status = written == SF_OK ? status : written;
    }
    sf_buf_free(&misfit);
    sf_graph_free(own);
    sf_arena_free(&arena);
    return status;
}

static sf_status check_options(sf_plan_options *options, sf_diag *diag)
{
    if (!options->cluster)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a search needs a cluster");
    if (options->level != 0 && options->level != 2 && options->level != 3)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the level of a search is 2 or 3");
    if (isnan(options->margin))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "option margin is no number");
    SF_CHECK_OPTIONS(diag, {"threads", options->threads}, {"seconds", options->seconds});
    options->level = options->level ? options->level : 3;
    options->margin = options->margin == 0 ? SF_PLAN_MARGIN : fmax(options->margin, 0);
    return SF_OK;
}

sf_status sf_plan_search(const sf_graph *graph, const sf_plan_spec *spec,
                         const sf_plan_options *options, sf_diag *diag, sf_plan **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, graph, out);
    struct job job = {.graph = graph, .diag = diag, .began = sf_now()};
    SF_TRY(sf_spec_take(spec, diag, &job.said));
    SF_TRY(SF_TAKE(sf_plan_options, options, &job.options, diag));
    SF_TRY(check_options(&job.options, diag));
    SF_TRY(sf_threads_open(job.options.threads, diag, &job.threads));
    sf_status status = sf_guarded(search, &job, diag);
    sf_threads_free(job.threads);
    *out = status == SF_OK ? job.plan : NULL;
    return status;
}
