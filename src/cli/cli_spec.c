/* The options of commands that make a plan, as a specification of it. */
#include <limits.h>
#include <unistd.h>

#include "cli/cli_options.h"

void sf_cli_add_making(sf_cli_table *table, sf_cli_making *making)
{
    sf_plan_spec *spec = &making->spec;
    const sf_cli_option shared[] = {
        {SF_OPT_MESH, &spec->mesh, "the ranks, such as data=2,model=4"},
        {SF_OPT_PIN, &making->pins,
         "PATTERN=SHARE@AXIS, such as 'batch/*=S(0)@data'; the axis may be *, and !S(0) forbids. "
         "May be given many times, the first that matches a tensor counts"},
        {SF_OPT_MICRO_BATCHES, &making->micro_batches,
         "micro-batches that the batch is cut into, whose gradients are added up; or auto "
         "(default): as few as make a plan fit that is then the fastest, for pin 1"},
        {SF_OPT_STAGES, &spec->stages,
         "a pipeline of so many stages, or of stages that begin with these scopes, as in "
         "layer_4,layer_8; for pin @ names the groups of one, as in layer_4@0-1; or auto "
         "(default): where it is faster, for pin none"},
        {SF_OPT_SCHEDULE, &spec->schedule,
         "the order of a pipeline: 1f1b, gpipe, interleaved:N, ..., or, for pin, a file with a "
         "table of tasks; or a program in Lua, whose name ends in .lua: what it says holds"},
        {SF_OPT_UNSAFE, &making->script.unsafe, "let that program use files and run others"},
        {SF_OPT_CO_SHARD, &spec->co_shard,
         "heads and features in so many chunks inside of each rank; RECIPE:N: what that recipe "
         "splits; N@SCOPE: in a scope alone, several with commas; none; or auto (default): where "
         "a plan does not fit otherwise, or is faster so, for pin none"},
        {SF_OPT_RECOMPUTE, &spec->recompute,
         "what is recomputed rather than kept for the backward pass: none, text, layer, parts, "
         "cheap, full, scopes, as in layer_?/attn, or auto: as little as makes a plan fit "
         "(default: text, what the step's text recomputes; in a search, else auto)"},
        {SF_OPT_SHARD_STATE, &spec->shard_state,
         "full: all state is sharded and gathered when it is needed: recipes with zero3, with "
         "--passes fullshard,prefetch,unshard; between: parameters are sharded between steps, "
         "with --passes fullshard,unshard,prefetch,linger; auto (default): as the recipe says, or "
         "whatever is fastest"},
        {SF_OPT_PASSES, &spec->passes,
         "how the programs of ranks are rewritten, as in fullshard,prefetch,unshard; sheaf passes "
         "lists them"},
        {SF_OPT_MEMORY, &spec->memory,
         "most memory of a rank, such as 12G (default: what the devices have)"},
        {SF_OPT_OUTPUT, &making->output, "where to write the plan, as JSON"},
        {SF_OPT_JSON, &making->show.json, "the summary for machines"},
        {SF_OPT_STRICT, &making->strict,
         "exit with 1 where there is a warning: a step that cannot be run here, a plan that "
         "repeats much of its compute"},
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
