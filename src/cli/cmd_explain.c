/* sheaf explain: the costs of a plan, their places and reasons. */
#include <stdio.h>
#include <unistd.h>

#include "base/diag.h"
#include "cli/cli.h"

struct job {
    sf_cli_pricing what;
    const char *pattern;
    sf_show_options show;
};

/* The cluster is the one that the plan names, or, where it names none because no search made it, so many cores. */
static sf_status explain(const struct job *job, sf_diag *diag)
{
    sf_cli_priced priced;
    sf_status status = sf_cli_open_priced(&job->what, diag, &priced);
    if (status == SF_OK)
        status = sf_plan_explain(priced.plan, priced.graph, priced.cluster, job->pattern,
                                 &job->show, NULL, diag);
    sf_cli_close_priced(&priced);
    return status;
}

int sf_cli_explain(int argc, char **argv)
{
    struct job job = {.show.size = sizeof job.show};
    const sf_cli_option options[] = {
        {SF_OPT_STEP, &job.what.step, "the step (default: the file that the plan was made from)"},
        {SF_OPT_CLUSTER, &job.what.cluster,
         "cluster to simulate on (default: the cluster that the plan was made for)"},
        {SF_OPT_ALL, &job.show.all, "print every tensor, reshard and alternative"},
        {SF_OPT_JSON, &job.show.json, "print JSON"},
    };
    const sf_cli_command command = {
        .name = "explain",
        .synopsis = "PLAN [WHAT] [--step STEP] [--cluster CLUSTER]",
        .about = "Prints what a plan costs on a cluster: time, memory, collectives and "
                 "alternatives. With WHAT, a pattern for tensors or scopes such as "
                 "'layer_0/mlp/*': their layouts, their reshards, and the cost of other layouts.",
        .operand = "PLAN",
        .second = "WHAT",
        .second_optional = true,
        .second_into = &job.pattern,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.what.load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.what.plan, &exit_code))
        return exit_code;
    job.show.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(explain(&job, diag), diag);
}
