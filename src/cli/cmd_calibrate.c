/* sheaf calibrate: measures this machine and writes the cluster that it is. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "cli/cli.h"

enum { UNSAID = -1 };

/* One line that changes, on a terminal only. */
static bool show_progress(void *context, const sf_event *event)
{
    (void)context;
    fprintf(stderr, "\r\033[K%s", event->text);
    fflush(stderr);
    return true;
}

static sf_status calibrate(const sf_calibrate_options *options, const char *output,
                           const sf_show_options *show, sf_diag *diag)
{
    sf_cluster *cluster = NULL;
    if (sf_ranks_started() <=
        1) /* else one rank writes, perhaps where the others have no such folder */
        SF_TRY(sf_cli_try_output(output, NULL, NULL, diag));
    sf_status status = sf_calibrate(options, diag, &cluster);
    if (options->listener)
        fprintf(stderr, "\r\033[K");
    if (status != SF_OK || !cluster)
        return status;
    if (output)
        status = sf_cluster_save(cluster, &SF_OPTIONS(sf_output, .path = output), diag);
    if (status == SF_OK && (!output || strcmp(output, "-") != 0))
        status = sf_cluster_show(cluster, show, NULL, diag);
    sf_cluster_free(cluster);
    return status;
}

int sf_cli_calibrate(int argc, char **argv)
{
    sf_calibrate_options calibrate_options = {.size = sizeof calibrate_options};
    sf_show_options show = {.size = sizeof show};
    const char *output = NULL;
    int64_t ranks = UNSAID, threads = 0;
    const sf_cli_option options[] = {
        {SF_OPT_RANKS, &ranks,
         "number of ranks, as threads (default 1); under mpirun, its processes"},
        {SF_OPT_THREADS, &threads,
         "threads of all ranks together (default: as many as the process may use)"},
        {SF_OPT_ENGINE, &calibrate_options.engine, "cpu (default), or cuda to measure the GPU"},
        {SF_OPT_PRECISION, &calibrate_options.precision,
         "with --engine cuda: compute f32 products in f32 (default) or tf32"},
        {SF_OPT_OUTPUT, &output,
         "write the cluster to FILE as JSON; - is standard output, without the summary"},
        {SF_OPT_NAME, &calibrate_options.name, "name of the cluster (default: the host name)"},
        {SF_OPT_SECONDS, &calibrate_options.seconds,
         "approximate time to measure each curve (default 1)"},
        {SF_OPT_LARGEST, &calibrate_options.largest,
         "size of the largest collective (default 64M)"},
        {SF_OPT_JSON, &show.json, "print the cluster as JSON"},
    };
    const sf_cli_command command = {
        .name = "calibrate",
        .synopsis = "[-n RANKS] [-o FILE]",
        .about = "Measures this machine with all ranks at work: products by size and type, loops, "
                 "convolutions, and collectives by size and group shape. Prints a cluster file "
                 "whose measured curves replace the cost model's formulas. Under mpirun it "
                 "measures the hosts and the network between them.",
        .options = options,
        .noptions = sizeof options / sizeof *options,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, NULL, &exit_code))
        return exit_code;
    if (ranks == 0)
        return sf_cli_misuse("calibrate", "--ranks is at least 1");
    if (ranks > INT_MAX || threads > INT_MAX)
        return sf_cli_misuse("calibrate", "--ranks or --threads is too large");
    calibrate_options.ranks = ranks == UNSAID ? 0 : (int)ranks;
    calibrate_options.threads = (int)threads;
    if (isatty(STDERR_FILENO) && sf_ranks_started() == 0)
        calibrate_options.listener = show_progress;
    show.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(calibrate(&calibrate_options, output, &show, diag), diag);
}
