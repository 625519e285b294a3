/* The search for a plan. */
#include <math.h>
#include <string.h>

#include "api/api_options.h"
#include "api/shard_state.h"
#include "base/file.h"
#include "base/guard.h"
#include "base/machine.h"
#include "base/output.h"
#include "front/lost_state.h"
#include "op/flops.h"
#include "op/op.h"
#include "pass/pass.h"
#include "plan/pipeline/schedules.h"
#include "plan/pipeline/stage_cut.h"
#include "plan/recompute_policy.h"
#include "plan/replicated_compute.h"
#include "plan/stacked_layers.h"
#include "run/runner.h"
#include "search/device_subsets.h"
#include "sheaf/pass.h"

struct job {
    const sf_graph *graph;
    sf_plan_options options;
    double began;
    sf_threads *threads;
    sf_diag *diag;
    sf_plan *plan;
};

static sf_status find_limit(const sf_plan_options *options, sf_arena *arena, sf_diag *diag,
                            int64_t *out)
{
    sf_costs *costs;
    int devices = options->cluster->ndevices;
    SF_TRY(sf_costs_new(options->cluster, 1, &devices, 0, arena, diag, &costs));
    *out = options->memory > 0 ? options->memory : sf_costs_memory(costs);
    return SF_OK;
}

/* Who says that there are to be none wants nothing moved to the host, either. */
static sf_status take_passes(const struct job *job, sf_arena *arena, sf_search_options *out)
{
    sf_pass_list list;
    sf_state_split split;
    SF_TRY(sf_read_shard_state(job->options.shard_state, job->diag, &split));
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

/* As many as the scopes that begin them, and one. */
static sf_status count_stages(const struct job *job, sf_arena *arena, int *out)
{
    uint32_t *forward, count;
    SF_TRY(sf_cut_by_scopes(job->graph, job->options.stage_scopes, arena, job->diag, &forward,
                            &count));
    *out = (int)count;
    return SF_OK;
}

static sf_status translate(const struct job *job, sf_arena *arena, sf_search_options *out)
{
    const sf_plan_options *options = &job->options;
    sf_mesh *mesh = NULL;
    if (options->mesh) {
        mesh = SF_NEW(arena, sf_mesh);
        if (sf_mesh_parse(sf_str_of(options->mesh), arena, job->diag, mesh) != SF_OK)
            return SF_EUSAGE;
    }
    *out = (sf_search_options){.cluster = options->cluster,
                               .target = sf_cluster_target(options->cluster),
                               .mesh = mesh,
                               .limited = options->memory > 0,
                               .npins = options->npins,
                               .pins = options->pins,
                               .margin = options->margin,
                               .level = options->level,
                               .deadline = options->seconds > 0 ? job->began + options->seconds : 0,
                               .recipes_only = options->recipes,
                               .recompute =
                                   options->recompute && strcmp(options->recompute, "auto") != 0
                                       ? options->recompute
                                       : NULL,
                               .as_text = !options->recompute,
                               .micro_batches = options->micro_batches,
                               .co_shard = options->co_shard,
                               .co_shards = options->co_shards,
                               .stages = options->stages,
                               .stage_scopes = options->stage_scopes,
                               .schedule = options->schedule,
                               .passes = options->passes,
                               .threads = job->threads,
                               .listener = options->listener,
                               .context = options->context};
    SF_TRY(take_passes(job, arena, out));
    if (options->stage_scopes)
        SF_TRY(count_stages(job, arena, &out->stages));
    return find_limit(options, arena, job->diag, &out->memory);
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
    sf_buf misfit = {0};
    sf_status status = translate(job, &arena, &options);
    if (status == SF_OK)
        status = sf_choose_on_parts(job->graph, &options, wanted ? &misfit : NULL, job->diag,
                                    &job->plan);
    if (status == SF_OK && *job->plan->passes.list)
        status = sf_plan_use_passes(job->plan, job->plan->passes.list, job->options.cluster,
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
    SF_CHECK_OPTIONS(diag, {"threads", options->threads}, {"memory", (double)options->memory},
                     {"seconds", options->seconds}, {"npins", options->npins},
                     {"stages", options->stages}, {"micro_batches", options->micro_batches},
                     {"co_shards", options->co_shards});
    sf_schedule_kind kind;
    if (options->schedule && sf_schedule_parse(options->schedule, &kind, diag) != SF_OK)
        return sf_file_is_same(options->schedule, options->schedule)
                   ? sf_hint(diag,
                             "a table of tasks is for sheaf pin, which takes its order as it is")
                   : SF_EUSAGE;
    options->level = options->level ? options->level : 3;
    options->margin = options->margin == 0 ? SF_PLAN_MARGIN : fmax(options->margin, 0);
    return SF_OK;
}

sf_status sf_plan_search(const sf_graph *graph, const sf_plan_options *options, sf_diag *diag,
                         sf_plan **out)
{
    struct job job = {.graph = graph, .diag = diag, .began = sf_now()};
    *out = NULL;
    SF_TRY(sf_options_take(options, &job.options, sizeof job.options, diag));
    SF_TRY(check_options(&job.options, diag));
    SF_TRY(sf_threads_open(job.options.threads, diag, &job.threads));
    sf_status status = sf_guarded(search, &job, diag);
    sf_threads_free(job.threads);
    *out = status == SF_OK ? job.plan : NULL;
    return status;
}
