/* sheaf explain: what a plan costs, where, and why. */
#include <stdio.h>
#include <unistd.h>

#include "base/diag.h"
#include "cli/cli.h"

struct job {
    const char *plan, *what, *step, *cluster;
    sf_load_options load;
    sf_show_options show;
};

/* The cluster is the one that the plan names, or, where it names none because no search made it, so many cores. */
static sf_status open_cluster(const struct job *job, const sf_plan *plan, const char *named,
                              sf_diag *diag, sf_cluster **out)
{
    char cores[32];
    if (job->cluster)
        return sf_cluster_open(job->cluster, diag, out);
    if (!*named) {
        snprintf(cores, sizeof cores, "1x%dxCPU", sf_plan_ranks(plan));
        sf_warn(diag, (sf_loc){.file = job->plan},
                "the plan was made for no cluster and is priced on %s; --cluster names another",
                cores);
        return sf_cluster_open(cores, diag, out);
    }
    return sf_cluster_open(named, diag, out) == SF_OK
               ? SF_OK
               : sf_hint(diag, "%s says so; --cluster names another", job->plan);
}

static sf_status explain_with(const struct job *job, const sf_graph *graph,
                              const char *cluster_name, sf_diag *diag)
{
    sf_plan *plan;
    sf_cluster *cluster;
    SF_TRY(sf_cli_open_plan(job->plan, graph, diag, &plan));
    sf_status status = open_cluster(job, plan, cluster_name, diag, &cluster);
    if (status == SF_OK) {
        status = sf_plan_explain(plan, graph, cluster, job->what, &job->show, NULL, diag);
        sf_cluster_free(cluster);
    }
    sf_plan_free(plan);
    return status;
}

/* The step is the one that the plan names, unless said otherwise. */
static sf_status explain(const struct job *job, sf_diag *diag)
{
    sf_plan_origin origin;
    sf_graph *graph;
    SF_TRY(sf_plan_origin_of(job->plan, diag, &origin));
    SF_TRY(sf_cli_load_planned(job->plan, job->step, &job->load, diag, &graph));
    sf_status status = explain_with(job, graph, origin.cluster, diag);
    sf_graph_free(graph);
    return status;
}

int sf_cli_explain(int argc, char **argv)
{
    struct job job = {0};
    const sf_cli_option options[] = {
        {SF_OPT_STEP, &job.step, "the step (default: the file that the plan was made from)"},
        {SF_OPT_CLUSTER, &job.cluster, "where to price the plan (default: what it was made for)"},
        {SF_OPT_ALL, &job.show.all, "every tensor, move and alternative"},
        {SF_OPT_JSON, &job.show.json, "for machines"},
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
