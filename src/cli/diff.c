/* sheaf diff: in what two plans differ. */
#include <unistd.h>

#include "cli/cli.h"

int sf_cli_diff(int argc, char **argv)
{
    const char *left = NULL, *right = NULL;
    sf_show_options show = {0};
    const sf_cli_option options[] = {
        {"all", 'a', SF_CLI_FLAG, &show.all, NULL, "every tensor, none folded with others"},
    };
    const sf_cli_command command = {
        .name = "diff",
        .synopsis = "PLAN OTHER [--all]",
        .about = "Says in what two plans of one step differ: mesh, what is expected of them, and "
                 "layouts of arguments and of ops.",
        .operand = "PLAN",
        .second = "OTHER",
        .second_into = &right,
        .options = options,
        .noptions = sizeof options / sizeof *options,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &left, &exit_code))
        return exit_code;
    show.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(sf_plan_diff(left, right, &show, "-", diag), diag);
}
