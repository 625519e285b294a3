/* sheaf pin: says by hand how a step is split, and writes the plan. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "cli/cli.h"

struct job {
    const char *passes;
    const char *step;
    sf_load_options load;
    sf_cli_making making;
    sf_pin_options pin;
    sf_cli_script script;
    bool names;
};

static sf_status make_plan(const struct job *job, const sf_graph *graph, sf_diag *diag,
                           sf_plan **out)
{
    sf_primitives *list;
    if (!job->script.path)
        return sf_pin_step(graph, &job->pin, diag, out);
    SF_TRY(sf_cli_run_script(&job->script, graph, diag, &list));
    sf_status status = sf_primitives_pin(list, &job->pin, diag, out);
    sf_primitives_free(list);
    return status;
}

static sf_status pin(const struct job *job, sf_diag *diag)
{
    sf_graph *graph;
    sf_plan *plan;
    SF_TRY(sf_cli_try_output(job->making.output, job->step, NULL, diag));
    sf_status status = sf_load(job->step, &job->load, diag, &graph);
    if (status != SF_OK)
        return status;
    if (job->names) {
        status = sf_pin_names(graph, NULL, diag);
        sf_graph_free(graph);
        return status;
    }
    status = make_plan(job, graph, diag, &plan);
    if (status == SF_OK) {
        if (job->passes)
            status = sf_plan_use_passes(plan, job->passes, NULL, 0, diag);
        if (status == SF_OK)
            status = sf_plan_check(plan, graph, 0, diag);
        if (status == SF_OK && job->making.output)
            status = sf_plan_save(plan, graph, &(sf_output){.path = job->making.output}, diag);
        if (status == SF_OK && (!job->making.output || strcmp(job->making.output, "-") != 0))
            status = sf_plan_show(plan, graph, &job->making.show, NULL, diag);
        sf_plan_free(plan);
    }
    sf_graph_free(graph);
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
         "pins known by name: dp, zero1, zero2, zero3, megatron, sequence, expert, 2d, or several, "
         "as in "
         "2d+zero1; ddp, fsdp, tp, sp and ep are other names"},
        {SF_OPT_RANKS, &ranks, "with a recipe: how many ranks; the mesh follows"},
        {SF_OPT_PASSES, &job.passes,
         "how the programs of ranks are rewritten, as in fullshard,prefetch,unshard; sheaf passes "
         "lists them"},
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
         "splits"},
        {SF_OPT_RECOMPUTE, &job.pin.recompute,
         "what is computed again rather than kept for the backward pass: none, layer, cheap, full, "
         "scopes, as in layer_?/attn, or text (default): what the step's text computes again"},
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
    if (job.script.unsafe && !job.script.path)
        return sf_cli_misuse("pin", "--unsafe is for a --schedule in Lua");
    if (!job.names && !job.script.path && !job.pin.recipe && !job.making.mesh && !job.pin.stages)
        return sf_cli_misuse("pin", "give a --recipe and --ranks, or a --mesh and --pin");
    if (!sf_cli_micro_batches(micro_batches, &job.pin.micro_batches) || job.pin.micro_batches == 0)
        return sf_cli_misuse("pin", "--micro-batches is a number");
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
