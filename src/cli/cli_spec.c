/* The options of commands that make a plan, as a specification of it. */
#include <limits.h>
#include <unistd.h>

#include "cli/cli_options.h"

void sf_cli_add_making(sf_cli_table *table, sf_cli_making *making)
{
    sf_plan_spec *spec = &making->spec;
    spec->size = sizeof *spec;
    making->show.size = sizeof making->show;
    const sf_cli_option shared[] = {
        {SF_OPT_MESH, &spec->mesh,
         "axes of the mesh and their sizes, as in data=2,model=4 (default: from the recipe; plan "
         "tries all meshes that suit the cluster)"},
        {SF_OPT_PIN, &making->pins,
         "PATTERN=LAYOUT@AXIS, as in 'batch/*=S(0)@data'; AXIS may be *, and !S(0) forbids a "
         "split. "
         "May be repeated; the first pin that matches a tensor counts, pins of the recipe come "
         "last"},
        {SF_OPT_MICRO_BATCHES, &making->micro_batches,
         "split the batch into N micro-batches and accumulate gradients (default: pin 1; plan "
         "auto, as few as make a plan fit that is then the fastest)"},
        {SF_OPT_STAGES, &spec->stages,
         "pipeline of N stages (1: none), or of stages that begin at the listed scopes, as in "
         "layer_4,layer_8; with pin, SCOPE@0-1 puts a stage on pipeline ranks 0 and 1 (default: "
         "pin none; plan auto, where a pipeline is faster or nothing else fits)"},
        {SF_OPT_SCHEDULE, &spec->schedule,
         "pipeline schedule: 1f1b, gpipe, interleaved:V, zb-h1, zb-v, chimera, dualpipe, 3f1b:V, "
         "interlaced, search:V, or, with pin, a file with a table of tasks (default: pin 1f1b; "
         "plan the fastest found); or a Lua program whose name ends in .lua: what it fixes holds"},
        {SF_OPT_UNSAFE, &making->script.unsafe,
         "let the Lua program open files and run other programs"},
        {SF_OPT_CO_SHARD, &spec->co_shard,
         "split heads and features into N chunks that each rank computes one after another; "
         "RECIPE:N splits what RECIPE splits; N@SCOPE applies to one scope, several are separated "
         "by commas (default: pin none; plan auto, where a plan does not fit otherwise, or is "
         "faster)"},
        {SF_OPT_RECOMPUTE, &spec->recompute,
         "recompute activations in the backward pass: none, text, layer, parts, cheap, full, "
         "layer:N, full:N, a list of scopes, or, with plan, auto: as little as makes a plan fit "
         "(default: text, what the step's text recomputes; plan another where that does not fit, "
         "or is faster)"},
        {SF_OPT_SHARD_STATE, &spec->shard_state,
         "full: shard all state and gather it where it is used (recipe zero3, passes "
         "fsdp,prefetch,unshard); between: shard parameters between steps (recipes zero1-between "
         "or zero3, passes fsdp,unshard,prefetch,defer-gradient-readers); auto (default): as the "
         "recipe says; plan whatever is fastest"},
        {SF_OPT_PASSES, &spec->passes,
         "store these passes in the plan, as in fsdp,prefetch,unshard; plan simulates plans after "
         "them; sheaf passes lists them (default: none; with plan, those that make the step "
         "faster)"},
        {SF_OPT_MEMORY, &spec->memory,
         "memory limit of a rank, such as 12G (default: what the devices have)"},
        {SF_OPT_OUTPUT, &making->output,
         "write the plan to FILE as JSON; - is standard output, without the summary"},
        {SF_OPT_JSON, &making->show.json, "print the summary as JSON"},
    };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        sf_cli_add_option(table, &shared[i]);
}

/* A schedule that is a program is no name of one. */
static void take_script(sf_cli_making *making, int64_t ranks)
{
    if (!sf_cli_is_script(making->spec.schedule))
        return;
    making->script.path = making->spec.schedule;
    making->script.ranks = (int)ranks;
    making->spec.schedule = NULL;
}

bool sf_cli_read_spec(sf_cli_making *making, const char *command, int64_t ranks, int *exit_code)
{
    take_script(making, ranks);
    sf_cli_say_schedule(making->spec.schedule);
    if (making->script.unsafe && !making->script.path)
        *exit_code = sf_cli_misuse(command, "--unsafe is for a --schedule in Lua");
    else if (ranks > INT_MAX)
        *exit_code = sf_cli_misuse(command, "--ranks is too large");
    else
        *exit_code = SF_EXIT_GOOD;
    if (*exit_code != SF_EXIT_GOOD)
        return false;
    making->spec.ranks = (int)ranks;
    making->spec.pins = making->pins.at;
    making->spec.npins = making->pins.count;
    making->show.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    sf_status status = SF_OK;
    if (making->micro_batches)
        status = sf_plan_spec_set(&making->spec, "micro_batches", making->micro_batches, diag);
    *exit_code = sf_cli_finish(status, diag);
    return status == SF_OK;
}
