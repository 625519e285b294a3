/* sheaf cache: the files that are kept between runs. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"

int sf_cli_cache(int argc, char **argv)
{
    sf_show_options show = {.size = sizeof show};
    bool clear = false;
    const sf_cli_option options[] = {
        {SF_OPT_CLEAR, &clear, "remove all cached files"},
        {SF_OPT_JSON, &show.json, "print JSON"},
    };
    const sf_cli_command command = {
        .name = "cache",
        .synopsis = "[--clear] [--json]",
        .about = "Prints where compiled loops and kernels are cached and how much space they take. "
                 "SHEAF_CACHE_MIB in the environment is the limit (default 512; 0: no cache). The "
                 "least recently used files are removed first.",
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
