/* sheaf cluster: describes a cluster, as text or as JSON for changes. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static sf_status show(const char *what, const char *measured, const sf_show_options *options,
                      sf_diag *diag)
{
    sf_cluster *cluster;
    if (!what || strcmp(what, "list") == 0)
        return sf_cluster_list(options, NULL, diag);
    sf_status status = sf_cli_open_cluster(what, measured, diag, &cluster);
    if (status != SF_OK)
        return status;
    status = sf_cluster_show(cluster, options, NULL, diag);
    sf_cluster_free(cluster);
    return status;
}

int sf_cli_cluster(int argc, char **argv)
{
    const char *what = NULL, *measured = NULL;
    sf_show_options show_options = {.size = sizeof show_options};
    const sf_cli_option options[] = {
        {SF_OPT_JSON, &show_options.json,
         "print the cluster as a cluster file; without CLUSTER, the names in the library"},
        {SF_OPT_MEASURED, &measured, SF_CLI_MEASURED},
    };
    const sf_cli_command command = {
        .name = "cluster",
        .synopsis = "[CLUSTER|list] [--measured FILE] [--json]",
        .about =
            "Prints the devices and links of a cluster and the time of common collectives on it. "
            "CLUSTER is a name from the library, a shorthand such as 2x8xV100, or a file. Without "
            "CLUSTER, lists the library. docs/reference/cluster.md describes cluster files.",
        .operand = "CLUSTER",
        .optional = true,
        .options = options,
        .noptions = sizeof options / sizeof *options,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &what, &exit_code))
        return exit_code;
    if (measured && (!what || strcmp(what, "list") == 0))
        return sf_cli_misuse("cluster", "--measured is for one CLUSTER");
    show_options.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(show(what, measured, &show_options, diag), diag);
}
