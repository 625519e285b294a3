/* sheaf explain: what a plan costs, where, and why. */
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "cli/cli.h"

struct job {
    const char *plan, *what, *step, *cluster;
    sf_load_options load;
    sf_show_options show;
};

static sf_status explain_with(const struct job *job, const sf_graph *graph,
                              const sf_cluster *cluster, sf_diag *diag)
{
    sf_plan *plan;
    SF_TRY(sf_cli_open_plan(job->plan, graph, diag, &plan));
    sf_status status = sf_plan_explain(plan, graph, cluster, job->what, &job->show, NULL, diag);
    sf_plan_free(plan);
    return status;
}

/* The step and the cluster are those that the plan names, unless said otherwise. */
static sf_status explain(const struct job *job, sf_diag *diag)
{
    sf_plan_origin origin;
    sf_graph *graph;
    sf_cluster *cluster;
    SF_TRY(sf_plan_origin_of(job->plan, diag, &origin));
    const char *step = job->step ? job->step : origin.step;
    const char *on = job->cluster ? job->cluster : origin.cluster;
    sf_loc loc = {.file = job->plan};
    if (!*step)
        return sf_fail(diag, SF_EUSAGE, loc, "the plan does not say its step: give --step");
    if (!*on)
        return sf_fail(diag, SF_EUSAGE, loc, "the plan does not say its cluster: give --cluster");
    if (!job->step && strcmp(step, "-") == 0)
        return sf_fail(diag, SF_EUSAGE, loc,
                       "the plan was made of a step from standard input: give --step");
    sf_status status = sf_cluster_open(on, diag, &cluster);
    if (status != SF_OK && !job->cluster)
        return sf_hint(diag, "%s says so; --cluster names another", job->plan);
    SF_TRY(status);
    status = sf_load(step, &job->load, diag, &graph);
    if (status == SF_OK) {
        status = explain_with(job, graph, cluster, diag);
        sf_graph_free(graph);
    } else if (!job->step) {
        status = sf_hint(diag, "%s says so; --step names another file", job->plan);
    }
    sf_cluster_free(cluster);
    return status;
}

int sf_cli_explain(int argc, char **argv)
{
    struct job job = {0};
    const sf_cli_option options[] = {
        {"step", 's', SF_CLI_TEXT, &job.step, "STEP",
         "the step (default: the file that the plan was made from)"},
        {"cluster", 'c', SF_CLI_TEXT, &job.cluster, "CLUSTER",
         "where to price the plan (default: what it was made for)"},
        {"all", 'a', SF_CLI_FLAG, &job.show.all, NULL, "every tensor, move and alternative"},
        {"json", 0, SF_CLI_FLAG, &job.show.json, NULL, "for machines"},
    };
    const sf_cli_command command = {
        .name = "explain",
        .synopsis = "PLAN [WHAT] [--step STEP] [--cluster CLUSTER]",
        .about = "Says what a plan costs on a cluster: time, memory, collectives, and the "
                 "alternatives. With WHAT, a pattern of names of tensors or scopes such as "
                 "'layer_0/mlp/*': their layouts, their moves, and what other layouts would cost.",
        .operand = "PLAN",
        .second = "WHAT",
        .second_optional = true,
        .second_into = &job.what,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.plan, &exit_code))
        return exit_code;
    job.show.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(explain(&job, diag), diag);
}
