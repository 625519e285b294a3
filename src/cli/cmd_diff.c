/* sheaf diff: the differences between two plans. */
#include <unistd.h>

#include "base/diag.h"
#include "cli/cli.h"

struct job {
    const char *left, *right, *step, *cluster;
    sf_load_options load;
    sf_show_options show;
};

static sf_status diff_with(const struct job *job, const sf_graph *graph, sf_diag *diag)
{
    sf_plan *left = NULL, *right = NULL;
    sf_cluster *cluster = NULL;
    sf_status status = SF_OK;
    if (job->cluster)
        status = sf_cli_open_cluster(job->cluster, NULL, diag, &cluster);
    if (status == SF_OK)
        status = sf_cli_open_plan(job->left, graph, diag, &left);
    if (status == SF_OK)
        status = sf_cli_open_plan(job->right, graph, diag, &right);
    if (status == SF_OK)
        status = cluster ? sf_plan_diff_on(graph, left, right, job->left, job->right, cluster,
                                           &job->show, NULL, diag)
                         : sf_plan_diff(graph, left, right, job->left, job->right, &job->show, NULL,
                                        diag);
    sf_cluster_free(cluster);
    sf_plan_free(left);
    sf_plan_free(right);
    return status;
}

/* The step is the one that a plan names, unless said otherwise. */
static sf_status diff(const struct job *job, sf_diag *diag)
{
    sf_plan_origin left = {.size = sizeof left};
    sf_graph *graph;
    SF_TRY(sf_plan_origin_of(job->left, diag, &left));
    SF_TRY(sf_cli_load_planned(*left.step ? job->left : job->right, job->step, &job->load, diag,
                               &graph));
    sf_status status = diff_with(job, graph, diag);
    sf_graph_free(graph);
    return status;
}

int sf_cli_diff(int argc, char **argv)
{
    struct job job = {.load.size = sizeof job.load, .show.size = sizeof job.show};
    const sf_cli_option options[] = {
        {SF_OPT_STEP, &job.step,
         "the step (default: the file that one of the plans was made from)"},
        {SF_OPT_CLUSTER, &job.cluster,
         "simulate both plans on this cluster (default: the figures in the plans, which pinned "
         "plans "
         "do not have)"},
        {SF_OPT_ALL, &job.show.all, "print every tensor; fold no rows"},
        {SF_OPT_JSON, &job.show.json, "print JSON"},
    };
    const sf_cli_command command = {
        .name = "diff",
        .synopsis = "PLAN OTHER [--step STEP] [--cluster CLUSTER] [--all] [--json]",
        .about = "Prints how two plans of one step differ: mesh, stages, micro-batches, recompute, "
                 "expected time and memory, and the layouts of arguments and ops.",
        .operand = "PLAN",
        .second = "OTHER",
        .second_into = &job.right,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.left, &exit_code))
        return exit_code;
    job.show.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(diff(&job, diag), diag);
}
