/* sheaf sim: where the time of a step goes, by the simulator. */
#include <unistd.h>

#include "base/diag.h"
#include "cli/cli.h"

struct job {
    sf_cli_pricing what;
    const char *trace, *against;
    int64_t ranks;
    sf_show_options show;
};

static sf_status simulate(const struct job *job, sf_diag *diag)
{
    sf_cli_priced priced;
    sf_output trace = {.size = sizeof trace, .path = job->trace};
    sf_sim_options options = {.size = sizeof options,
                              .trace = job->trace ? &trace : NULL,
                              .ranks = (int)job->ranks,
                              .against = job->against};
    SF_TRY(sf_cli_try_output(job->trace, job->what.plan, job->what.step, diag));
    sf_status status = sf_cli_open_priced(&job->what, diag, &priced);
    if (status == SF_OK)
        status = sf_plan_simulate(priced.plan, priced.graph, priced.cluster, &options, &job->show,
                                  NULL, diag);
    sf_cli_close_priced(&priced);
    return status;
}

int sf_cli_sim(int argc, char **argv)
{
    struct job job = {.show.size = sizeof job.show};
    const sf_cli_option options[] = {
        {SF_OPT_TRACE, &job.trace,
         "write the timeline to FILE, for Perfetto (ui.perfetto.dev) or chrome://tracing"},
        {SF_OPT_AGAINST, &job.against,
         "compare with this timeline, written by train or run with --profile FILE.json; largest "
         "differences first"},
        {SF_OPT_RANKS, &job.ranks, "ranks in the timeline (default 1)"},
        {SF_OPT_STEP, &job.what.step, "the step (default: the file that the plan was made from)"},
        {SF_OPT_CLUSTER, &job.what.cluster,
         "cluster to simulate on (default: the cluster that the plan was made for)"},
        {SF_OPT_MEASURED, &job.what.measured, SF_CLI_MEASURED},
        {SF_OPT_PASSES, &job.what.passes, SF_CLI_PASSES},
        {SF_OPT_MEMORY, &job.what.memory,
         "with --passes: memory of a device (default: what the cluster's devices have)"},
        {SF_OPT_ALL, &job.show.all, "print every instruction, the slowest first"},
        {SF_OPT_JSON, &job.show.json, "print JSON"},
    };
    const sf_cli_command command = {
        .name = "sim",
        .synopsis = "PLAN [--trace FILE] [--against FILE] [--step STEP] [--cluster CLUSTER] "
                    "[--measured FILE] [--passes LIST] [--all] [--json]",
        .about = "Simulates a plan's program on a cluster, instruction by instruction: compute, "
                 "exposed communication by link, and peak memory.",
        .operand = "PLAN",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.what.load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.what.plan, &exit_code))
        return exit_code;
    job.show.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(simulate(&job, diag), diag);
}
