/* sheaf cache: what is kept between runs. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"

int sf_cli_cache(int argc, char **argv)
{
    sf_show_options show = {0};
    bool clear = false;
    const sf_cli_option options[] = {
        {SF_OPT_CLEAR, &clear, "remove all of it"},
        {SF_OPT_JSON, &show.json, "for machines"},
    };
    const sf_cli_command command = {
        .name = "cache",
        .synopsis = "[--clear] [--json]",
        .about = "Says what is kept between runs, loops and kernels that were compiled: where it "
                 "is, how "
                 "much, and how much it may be, which SHEAF_CACHE_MIB in the environment says (512 "
                 "unless said). What was not used for the longest time goes first.",
        .options = options,
        .noptions = sizeof options / sizeof *options,
    };
    int exit_code;
    const char *none = NULL;
    if (!sf_cli_parse(&command, argc, argv, &none, &exit_code))
        return exit_code;
    if (clear) {
        int64_t removed = sf_cache_clear();
        fprintf(stderr, "sheaf: removed %" PRId64 " file%s\n", removed, removed == 1 ? "" : "s");
    }
    show.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(sf_cache_show(&show, NULL, diag), diag);
}
