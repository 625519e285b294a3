/* sheaf report: a page about a plan, for a browser. */
#include <limits.h>

#include "base/diag.h"
#include "cli/cli.h"

struct job {
    sf_cli_pricing what;
    const char *output;
    sf_report_options options;
    int64_t threads;
};

static sf_status report(const struct job *job, sf_diag *diag)
{
    sf_cli_priced priced;
    sf_output output = {.size = sizeof output, .path = job->output};
    SF_TRY(sf_cli_try_output(job->output, job->what.plan, job->what.step, diag));
    SF_TRY(sf_cli_try_output(job->output, job->options.against, job->what.cluster, diag));
    sf_status status = sf_cli_open_priced(&job->what, diag, &priced);
    if (status == SF_OK)
        status =
            sf_plan_report(priced.plan, priced.graph, priced.cluster, &job->options, &output, diag);
    sf_cli_close_priced(&priced);
    return status;
}

int sf_cli_report(int argc, char **argv)
{
    struct job job = {.options.size = sizeof job.options};
    const sf_cli_option options[] = {
        {SF_OPT_OUTPUT, &job.output, "write the page to FILE; - is standard output"},
        {SF_OPT_AGAINST, &job.options.against,
         "compare with this timeline, written by train or run with --profile FILE.json"},
        {SF_OPT_TITLE, &job.options.title, "title of the page (default: the name of the step)"},
        {SF_OPT_STEP, &job.what.step, "the step (default: the file that the plan was made from)"},
        {SF_OPT_CLUSTER, &job.what.cluster,
         "cluster to simulate on (default: the cluster that the plan was made for)"},
        {SF_OPT_THREADS, &job.threads,
         "threads of the simulation (default: as many as the process may use)"},
        {SF_OPT_JSON, &job.options.json, "print the data of the page as JSON"},
    };
    const sf_cli_command command = {
        .name = "report",
        .synopsis = "PLAN -o FILE.html [--against FILE] [--title TEXT] [--step STEP] "
                    "[--cluster CLUSTER] [--json]",
        .about = "Writes one self-contained HTML page about a plan: summary, timeline, memory, "
                 "communication, costs and layouts by module, other choices of recompute and "
                 "micro-batches, and the recipes.",
        .operand = "PLAN",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.what.load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.what.plan, &exit_code))
        return exit_code;
    if (!job.output && !job.options.json)
        return sf_cli_misuse(command.name, "-o is missing: where to write the page");
    if (job.threads > INT_MAX)
        return sf_cli_misuse(command.name, "--threads is too large");
    job.options.threads = (int)job.threads;
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(report(&job, diag), diag);
}
