/* sheaf pin: says by hand how a step is split, and writes the plan. */
#include <string.h>

#include "base/diag.h"
#include "cli/cli.h"

struct job {
    const char *cluster;  /* whose costs passes go by, */
    const char *measured; /* with the times of a run there */
    const char *step;
    sf_load_options load;
    sf_cli_making making;
    bool names;
};

/* The step is the one that a schedule makes of it. */
static sf_status make_plan(const struct job *job, const sf_graph **graph, sf_diag *diag,
                           sf_primitives **list, sf_plan **out)
{
    *out = NULL;
    if (!job->making.script.path)
        return sf_pin_step(*graph, &job->making.spec, diag, out);
    SF_TRY(sf_cli_run_script(&job->making.script, *graph, diag, list));
    const sf_graph *step = *graph;
    *graph = sf_primitives_graph(*list);
    SF_TRY(sf_cli_check_unchanged(step, *graph, job->making.output, diag));
    return sf_primitives_pin(*list, &job->making.spec, diag, out);
}

/* The cluster, if one is named, has devices for all ranks, and passes of the plan go by its costs. */
static sf_status take_cluster(const struct job *job, sf_diag *diag, sf_plan *plan)
{
    sf_cluster *cluster;
    sf_status status = SF_OK;
    if (!job->cluster)
        return SF_OK;
    SF_TRY(sf_cli_open_cluster(job->cluster, job->measured, diag, &cluster));
    if (sf_plan_ranks(plan) > sf_cluster_devices(cluster))
        status =
            sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the plan is for %d ranks, the cluster has %d",
                    sf_plan_ranks(plan), sf_cluster_devices(cluster));
    else if (*sf_plan_passes_of(plan))
        status = sf_plan_use_passes(plan, sf_plan_passes_of(plan), cluster, job->making.spec.memory,
                                    diag);
    sf_cluster_free(cluster);
    return status;
}

/* Without a number of ranks there are as many as the cluster has devices. */
static sf_status take_ranks(struct job *job, sf_diag *diag)
{
    sf_plan_spec *spec = &job->making.spec;
    sf_cluster *cluster;
    if (!job->cluster || spec->ranks > 0 || spec->mesh)
        return SF_OK;
    SF_TRY(sf_cli_open_cluster(job->cluster, NULL, diag, &cluster));
    spec->ranks = job->making.script.ranks = sf_cluster_devices(cluster);
    sf_cluster_free(cluster);
    return SF_OK;
}

static sf_status pin(struct job *job, sf_diag *diag)
{
    sf_graph *step;
    sf_primitives *list = NULL;
    sf_plan *plan;
    SF_TRY(sf_cli_try_output(job->making.output, job->step, NULL, diag));
    SF_TRY(take_ranks(job, diag));
    sf_status status = sf_load(job->step, &job->load, diag, &step);
    if (status != SF_OK)
        return status;
    if (job->names) {
        status = sf_pin_names(step, NULL, diag);
        sf_graph_free(step);
        return status;
    }
    const sf_graph *graph = step;
    status = make_plan(job, &graph, diag, &list, &plan);
    if (status == SF_OK) {
        status = take_cluster(job, diag, plan);
        if (status == SF_OK)
            status = sf_plan_check(plan, graph, job->making.spec.memory, diag);
        if (status == SF_OK && job->making.output)
            status =
                sf_plan_save(plan, graph, &SF_OPTIONS(sf_output, .path = job->making.output), diag);
        if (status == SF_OK && (!job->making.output || strcmp(job->making.output, "-") != 0))
            status = sf_plan_show(plan, graph, &job->making.show, NULL, diag);
    }
    sf_plan_free(plan);
    sf_primitives_free(list);
    sf_graph_free(step);
    return status;
}

static bool is_auto(const char *text)
{
    return text && strcmp(text, "auto") == 0;
}

int sf_cli_pin(int argc, char **argv)
{
    struct job job = {0};
    int64_t ranks = 0;
    sf_plan_spec *spec = &job.making.spec;
    const sf_cli_option options[] = {
        {SF_OPT_RECIPE, &spec->recipe,
         "one of dp, zero1, zero2, zero3, zero1-between, megatron, sequence, expert, 2d, or "
         "several joined by +, as in 2d+zero1; ddp, fsdp, tp, sp and ep are aliases"},
        {SF_OPT_RANKS, &ranks,
         "number of ranks (default: the devices of the cluster); the recipe determines the mesh"},
        {SF_OPT_CLUSTER, &job.cluster,
         "cluster whose cost model the passes use (default: cores of one machine)"},
        {SF_OPT_MEASURED, &job.measured, "with --cluster: " SF_CLI_MEASURED},
        {SF_OPT_NAMES, &job.names,
         "list the names that pins may use (arguments, gradients, scopes) and make no plan"},
    };
    const sf_cli_command command = {
        .name = "pin",
        .synopsis = "STEP (--recipe RECIPE -n N | --mesh AXES | --schedule LUA) [--pin PIN...] "
                    "[-o PLAN]",
        .about =
            "Makes a plan by hand: pins and recipes fix layouts, sharding propagation finds all "
            "others, and the plan is checked before it is written. docs/reference/plan-file.md "
            "describes layouts, pins and recipes, docs/reference/schedules.md Lua programs.",
        .operand = "STEP",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.load,
        .making = &job.making,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.step, &exit_code))
        return exit_code;
    if (!sf_cli_read_spec(&job.making, "pin", ranks, &exit_code))
        return exit_code;
    if (job.measured && !job.cluster)
        return sf_cli_misuse("pin", "--measured needs a --cluster");
    if (is_auto(job.making.micro_batches) || is_auto(spec->co_shard))
        return sf_cli_misuse("pin", "--micro-batches and --co-shard are numbers: auto is for plan");
    if (!job.names && !job.making.script.path && !spec->recipe && !spec->mesh && !spec->stages &&
        !((spec->shard_state || spec->npins > 0) && (ranks > 0 || job.cluster)))
        return sf_cli_misuse(
            "pin", "give --recipe and --ranks, --mesh and --pin, --stages, or --schedule");
    if (job.names && (job.making.show.json || job.making.output))
        return sf_cli_misuse("pin", "--names goes with neither --json nor --output");
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(pin(&job, diag), diag);
}
