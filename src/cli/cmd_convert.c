/* sheaf convert: reads a step and writes it as canonical StableHLO. */
#include <limits.h>

#include "base/diag.h"
#include "cli/cli.h"

/* With a schedule, the step has its replacements. */
static sf_status convert(const char *from, const sf_load_options *load, const sf_cli_script *script,
                         const char *to, sf_diag *diag)
{
    sf_graph *step;
    sf_primitives *list = NULL;
    SF_TRY(sf_cli_try_output(to, from, load->sidecar, diag));
    sf_status status = sf_load(from, load, diag, &step);
    if (status != SF_OK)
        return status;
    if (script->path)
        status = sf_cli_run_script(script, step, diag, &list);
    if (status == SF_OK)
        status = sf_save_stablehlo(list ? sf_primitives_graph(list) : step,
                                   &SF_OPTIONS(sf_output, .path = to), diag);
    sf_primitives_free(list);
    sf_graph_free(step);
    return status;
}

int sf_cli_convert(int argc, char **argv)
{
    sf_load_options load = {.size = sizeof load};
    const char *from, *to = "-";
    sf_cli_script script = {0};
    int64_t ranks = 0;
    const sf_cli_option options[] = {
        {SF_OPT_OUTPUT, &to, "write to FILE (default: standard output)"},
        {SF_OPT_SCHEDULE, &script.path, "apply the replacements of this Lua program"},
        {SF_OPT_RANKS, &ranks, "value of sheaf.ranks in the Lua program"},
        {SF_OPT_UNSAFE, &script.unsafe, "let the Lua program open files and run other programs"},
    };
    const sf_cli_command command = {
        .name = "convert",
        .synopsis = "STEP [--schedule LUA] [-o FILE]",
        .about = "Reads a step (StableHLO or HLO text) and writes canonical StableHLO: functions "
                 "inlined, loops with a known trip count unrolled, unused ops removed.",
        .operand = "STEP",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &from, &exit_code))
        return exit_code;
    if (script.path ? !sf_cli_is_script(script.path) : script.unsafe || ranks > 0)
        return sf_cli_misuse("convert",
                             "--unsafe and --ranks need a --schedule, which ends in .lua");
    script.ranks = (int)(ranks < INT_MAX ? ranks : INT_MAX);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(convert(from, &load, &script, to, diag), diag);
}
