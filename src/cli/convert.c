/* sheaf convert: reads a step and writes it as canonical StableHLO. */
#include "base/diag.h"
#include "cli/cli.h"

static sf_status convert(const char *from, const sf_load_options *load, const char *to,
                         sf_diag *diag)
{
    sf_graph *graph;
    SF_TRY(sf_cli_try_output(to, from, load->sidecar, diag));
    sf_status status = sf_load(from, load, diag, &graph);
    if (status != SF_OK)
        return status;
    status = sf_save_stablehlo(graph, &(sf_output){.path = to}, diag);
    sf_graph_free(graph);
    return status;
}

int sf_cli_convert(int argc, char **argv)
{
    sf_load_options load = {0};
    const char *from, *to = "-";
    const sf_cli_option options[] = {
        {SF_OPT_OUTPUT, &to, "where to write (default: standard output)"},
    };
    const sf_cli_command command = {
        .name = "convert",
        .synopsis = "STEP [-o FILE]",
        .about = "Reads a step, StableHLO or HLO text, and writes it as canonical StableHLO: "
                 "calls inlined, loops with a known trip count unrolled, unused ops dropped.",
        .operand = "STEP",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &from, &exit_code))
        return exit_code;
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(convert(from, &load, to, diag), diag);
}
