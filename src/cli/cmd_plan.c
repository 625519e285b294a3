/* sheaf plan: from a step and a cluster to the best split. */
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/machine.h"
#include "cli/cli.h"

struct job {
    const char *step, *cluster;
    sf_load_options load;
    sf_cli_making making;
    sf_plan_options plan;
    bool terminal;
};

/* On a terminal one line that is written over; elsewhere nothing, so that logs stay short. */
static bool print_progress(void *context, const sf_event *event)
{
    const struct job *job = context;
    if (job->terminal)
        fprintf(stderr, "\r\033[K%s", event->text);
    return true;
}

/* The cost of the schedule is known from a second search, without it. The step becomes that of the
 * schedule. */
static sf_status search_with_script(struct job *job, const sf_graph **step, sf_diag *diag,
                                    sf_primitives **kept, sf_plan **out)
{
    const sf_graph *graph = *step;
    sf_primitives *list;
    sf_plan *free_plan = NULL;
    sf_plan_options rest = job->plan;
    rest.misfit = NULL;
    job->making.script.ranks = sf_cluster_devices(job->plan.cluster);
    SF_TRY(sf_cli_run_script(&job->making.script, graph, diag, kept));
    list = *kept;
    *step = sf_primitives_graph(list);
    SF_TRY(sf_cli_check_unchanged(graph, *step, job->making.output, diag));
    sf_status status = sf_primitives_search(list, &job->making.spec, &job->plan, diag, out);
    if (status == SF_OK &&
        sf_plan_search(graph, &job->making.spec, &rest, NULL, &free_plan) == SF_OK)
        sf_cli_say_cost(*out, free_plan);
    sf_plan_free(free_plan);
    return status;
}

static sf_status search(struct job *job, const sf_graph *graph, const sf_cluster *cluster,
                        sf_diag *diag)
{
    sf_plan *plan = NULL;
    sf_primitives *list = NULL;
    job->plan.cluster = cluster;
    sf_status status = job->making.script.path
                           ? search_with_script(job, &graph, diag, &list, &plan)
                           : sf_plan_search(graph, &job->making.spec, &job->plan, diag, &plan);
    if (job->terminal)
        fprintf(stderr, "\r\033[K");
    if (status == SF_OK && job->making.output)
        status =
            sf_plan_save(plan, graph, &SF_OPTIONS(sf_output, .path = job->making.output), diag);
    if (status == SF_OK && (!job->making.output || strcmp(job->making.output, "-") != 0))
        status = sf_plan_explain(plan, graph, cluster, NULL, &job->making.show, NULL, diag);
    sf_plan_free(plan);
    sf_primitives_free(list);
    return status;
}

static sf_status plan(struct job *job, sf_diag *diag)
{
    sf_graph *graph;
    sf_cluster *cluster;
    double began = sf_now();
    SF_TRY(sf_cli_try_output(job->making.output, job->step, job->cluster, diag));
    SF_TRY(sf_cluster_open(job->cluster, diag, &cluster));
    sf_status status = sf_load(job->step, &job->load, diag, &graph);
    if (status == SF_OK) {
        if (job->plan.seconds > 0) /* reading counts */
            job->plan.seconds = fmax(job->plan.seconds - (sf_now() - began), 1e-9);
        status = search(job, graph, cluster, diag);
        sf_graph_free(graph);
    }
    sf_cluster_free(cluster);
    return status;
}

/* A search makes graphs and programs and frees them, hundreds of times. Freed memory stays with the
 * process: pages that go back to the system must be requested, and cleared, each time. */
static void keep_what_is_freed(void)
{
#ifdef __GLIBC__
    enum { LARGEST = 1 << 30, AT_ONCE = 1 << 26 };
    mallopt(M_MMAP_THRESHOLD, LARGEST);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, AT_ONCE);
#endif
}

int sf_cli_plan(int argc, char **argv)
{
    struct job job = {.plan = {.size = sizeof job.plan, .margin = SF_PLAN_MARGIN}};
    int64_t level = 3, threads = 0;
    const sf_cli_option options[] = {
        {SF_OPT_CLUSTER, &job.cluster,
         "cluster to plan for: a name from the library, a shorthand such as 8xH100, 2x8xV100 or "
         "8xA100+8xV100, or a file"},
        {SF_OPT_OPTIMIZE, &level, "2: faster search; 3: more meshes (default)"},
        {SF_OPT_SECONDS, &job.plan.seconds,
         "stop the search S seconds after the start, once a plan fits; the result may then differ "
         "between runs"},
        {SF_OPT_RECIPES, &job.plan.recipes, "choose among the recipes only"},
        {SF_OPT_MARGIN, &job.plan.margin,
         "how much faster than the best recipe a searched plan must be (default 1; 0: take the "
         "fastest)"},
        {SF_OPT_RESERVE, &job.plan.reserve,
         "memory of each device to leave free, for context, NCCL and fragmentation (default: what "
         "the cluster says, for GPUs of the library 2.25G)"},
        {SF_OPT_COMPARE, &job.making.show.all,
         "list every mesh and recipe considered, not only the best of each recipe"},
        {SF_OPT_THREADS, &threads,
         "threads of the search (default: as many as the process may use)"},
    };
    const sf_cli_command command = {
        .name = "plan",
        .synopsis = "STEP --cluster CLUSTER [--memory SIZE] [-O2] [--mesh AXES] [--pin PIN...] "
                    "[-o PLAN]",
        .about = "Searches for the plan with the shortest simulated step time on a cluster that "
                 "fits in device memory. What --mesh, --pin and the other options fix holds in the "
                 "plan; the rest is searched.",
        .operand = "STEP",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.load,
        .making = &job.making,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.step, &exit_code))
        return exit_code;
    if (!job.cluster)
        return sf_cli_misuse("plan", "give a --cluster, such as 2x8xV100");
    if (!sf_cli_read_spec(&job.making, "plan", 0, &exit_code))
        return exit_code;
    if (level != 2 && level != 3)
        return sf_cli_misuse("plan", "the level is 2 or 3");
    if (threads > INT_MAX)
        return sf_cli_misuse("plan", "--threads is too large");
    /* In sf_plan_options 0 means the default. */
    job.plan.margin = job.plan.margin > 0 ? job.plan.margin : -1;
    job.plan.level = (int)level;
    job.plan.threads = (int)threads;
    job.plan.cluster_name = job.cluster;
    sf_output standard = {.size = sizeof standard};
    job.plan.misfit = job.making.show.json ? &standard : NULL;
    job.plan.listener = print_progress;
    job.plan.context = &job;
    job.terminal = isatty(STDERR_FILENO);
    sf_diag *diag = sf_cli_diag();
    keep_what_is_freed();
    return sf_cli_finish(plan(&job, diag), diag);
}
