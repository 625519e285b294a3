/* sheaf passes: how programs can be rewritten. */
#include <unistd.h>

#include "cli/cli.h"

int sf_cli_passes(int argc, char **argv)
{
    sf_show_options show = {.size = sizeof show};
    const sf_cli_option options[] = {
        {SF_OPT_JSON, &show.json, "print JSON"},
    };
    const sf_cli_command command = {
        .name = "passes",
        .synopsis = "[--json]",
        .about = "Lists the passes that rewrite the programs of a plan, with their options. "
                 "docs/reference/passes.md describes them.",
        .options = options,
        .noptions = sizeof options / sizeof *options,
    };
    int exit_code;
    const char *none = NULL;
    if (!sf_cli_parse(&command, argc, argv, &none, &exit_code))
        return exit_code;
    show.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(sf_passes_show(&show, NULL, diag), diag);
}
