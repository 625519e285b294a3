/* sheaf pin: says by hand how a step is split, and writes the plan. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "cli/cli.h"

struct job {
    const char *passes, *cluster; /* whose costs they go by, */
    const char *measured;         /* with what a run took there; */
    int64_t memory;               /* and so much of a device; 0: all that it has */
    const char *step;
    sf_load_options load;
    sf_cli_making making;
    sf_pin_options pin;
    sf_cli_script script;
    bool names;
};

/* The step is the one that a schedule makes of it. */
static sf_status make_plan(const struct job *job, const sf_graph **graph, sf_diag *diag,
                           sf_primitives **list, sf_plan **out)
{
    *out = NULL;
    if (!job->script.path)
        return sf_pin_step(*graph, &job->pin, diag, out);
    SF_TRY(sf_cli_run_script(&job->script, *graph, diag, list));
    const sf_graph *step = *graph;
    *graph = sf_primitives_graph(*list);
    SF_TRY(sf_cli_check_unchanged(step, *graph, job->making.output, diag));
    return sf_primitives_pin(*list, &job->pin, diag, out);
}

/* Those that are named, or that the plan has already. */
static sf_status take_passes(const struct job *job, sf_diag *diag, sf_plan *plan)
{
    const char *passes = job->passes ? job->passes : sf_plan_passes_of(plan);
    sf_cluster *cluster = NULL;
    if (!*passes)
        return SF_OK;
    if (job->cluster)
        SF_TRY(sf_cli_open_cluster(job->cluster, job->measured, diag, &cluster));
    sf_status status = sf_plan_use_passes(plan, passes, cluster, job->memory, diag);
    sf_cluster_free(cluster);
    return status;
}

static sf_status pin(const struct job *job, sf_diag *diag)
{
    sf_graph *step;
    sf_primitives *list = NULL;
    sf_plan *plan;
    SF_TRY(sf_cli_try_output(job->making.output, job->step, NULL, diag));
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
        status = take_passes(job, diag, plan);
        if (status == SF_OK)
            status = sf_plan_check(plan, graph, 0, diag);
        if (status == SF_OK && job->making.output)
            status = sf_plan_save(plan, graph, &(sf_output){.path = job->making.output}, diag);
        if (status == SF_OK && (!job->making.output || strcmp(job->making.output, "-") != 0))
            status = sf_plan_show(plan, graph, &job->making.show, NULL, diag);
    }
    sf_plan_free(plan);
    sf_primitives_free(list);
    sf_graph_free(step);
    return status;
}

int sf_cli_pin(int argc, char **argv)
{
    struct job job = {0};
    int64_t ranks = 0;
    const char *micro_batches = "1", *co_shard = "none";
    char recipe[64];
    const sf_cli_option options[] = {
        {SF_OPT_RECIPE, &job.pin.recipe,
         "pins known by name: dp, zero1, zero2, zero3, zero1-between, megatron, sequence, expert, "
         "2d, or several, as in 2d+zero1; ddp, fsdp, tp, sp and ep are other names"},
        {SF_OPT_RANKS, &ranks, "with a recipe: how many ranks; the mesh follows"},
        {SF_OPT_PASSES, &job.passes,
         "how the programs of ranks are rewritten, as in fsdp,prefetch,unshard; sheaf passes "
         "lists them"},
        {SF_OPT_SHARD_STATE, &job.pin.shard_state,
         "full: all state in pieces, gathered when it is needed: zero3, with the recipe if there "
         "is one, and --passes fsdp,prefetch,unshard; between: parameters of zero1 or zero2 "
         "in pieces between steps, gathered in the next one's forward pass, and --passes "
         "fsdp,unshard,prefetch,defer-gradient-readers; auto (default): as the recipe says"},
        {SF_OPT_CLUSTER, &job.cluster,
         "whose costs passes go by, a name, a shorthand or a file (default: cores of a machine)"},
        {SF_OPT_MEASURED, &job.measured, "with --cluster: " SF_CLI_MEASURED},
        {SF_OPT_MEMORY, &job.memory,
         "memory of a device that passes go by (default: what those of the cluster have)"},
        {SF_OPT_MICRO_BATCHES, &micro_batches,
         "turns that the batch is cut into; their gradients are added up (default 1)"},
        {SF_OPT_STAGES, &job.pin.stages,
         "a pipeline of so many stages, or of stages that begin with these scopes, as in "
         "layer_4,layer_8; @ names the groups of one, as in layer_4@0-1"},
        {SF_OPT_SCHEDULE, &job.pin.schedule,
         "the order of a pipeline: 1f1b (default), gpipe, interleaved:N, ..., or a file with a "
         "table of tasks; or a program in Lua, whose name ends in .lua"},
        {SF_OPT_UNSAFE, &job.script.unsafe, "let that program use files and run others"},
        {SF_OPT_CO_SHARD, &co_shard,
         "heads and features in so many turns inside of each rank; RECIPE:N: what that recipe "
         "splits; N@SCOPE: in a scope alone, several with commas"},
        {SF_OPT_RECOMPUTE, &job.pin.recompute,
         "recompute rather than kept for the backward pass: none, layer, parts, "
         "cheap, full, scopes, as in layer_?/attn, or text (default): what the step's text "
         "computes again"},
        {SF_OPT_NAMES, &job.names,
         "list what can be pinned: arguments, gradients and scopes by name; make no plan"},
    };
    const sf_cli_command command = {
        .name = "pin",
        .synopsis = "STEP (--recipe RECIPE -n N | --mesh AXES | --schedule LUA) [--pin PIN...] "
                    "[-o PLAN]",
        .about =
            "Says by hand how a step is split over ranks. What is pinned is fixed, the layouts "
            "of all other tensors follow, and the plan is checked before it is written. "
            "docs/splitting.md explains layouts and pins, docs/schedules.md programs in Lua.",
        .operand = "STEP",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.load,
        .making = &job.making,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.step, &exit_code))
        return exit_code;
    if (ranks > INT_MAX)
        return sf_cli_misuse("pin", "--ranks is too large");
    if (sf_cli_is_script(job.pin.schedule)) {
        job.script.path = job.pin.schedule;
        job.script.ranks = (int)ranks;
        job.pin.schedule = NULL;
    }
    sf_cli_say_schedule(job.script.path ? NULL : job.pin.schedule);
    if (job.script.unsafe && !job.script.path)
        return sf_cli_misuse("pin", "--unsafe is for a --schedule in Lua");
    if (job.measured && !job.cluster)
        return sf_cli_misuse("pin", "--measured needs a --cluster");
    if (!job.names && !job.script.path && !job.pin.recipe && !job.making.mesh && !job.pin.stages &&
        !(job.pin.shard_state && ranks > 0))
        return sf_cli_misuse("pin", "give a --recipe and --ranks, or a --mesh and --pin");
    if (!sf_cli_micro_batches(micro_batches, &job.pin.micro_batches) || job.pin.micro_batches == 0)
        return sf_cli_misuse("pin", "--micro-batches is a number of at least 1");
    if (!sf_cli_co_shard(co_shard, recipe, sizeof recipe, &job.pin.co_shard, &job.pin.co_shards) ||
        job.pin.co_shards == 0)
        return sf_cli_misuse("pin", "--co-shard is a number, RECIPE:NUMBER, or none");
    job.pin.ranks = (int)ranks;
    job.pin.mesh = job.making.mesh;
    job.pin.pins = job.making.pins.at;
    job.pin.npins = job.making.pins.count;
    job.making.show.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish_making(pin(&job, diag), &job.making, diag);
}
