/* How long planning takes: plan_bench CLUSTER LEVEL STEP. Prints a row: step, nodes, cluster, level, seconds
 * to read and to plan, megabytes, and the step time that is expected. A step for which nothing fits is
 * planned without a limit. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/machine.h"
#include "ir/graph.h"
#include "plan/plan.h"
#include "sheaf/sheaf.h"

static int fail(sf_diag *diag)
{
    fprintf(stderr, "%s\n", sf_diag_text(diag, 0));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        printf("%-28s %8s %10s %3s %8s %8s %7s %12s\n", "step", "nodes", "cluster", "-O", "read s",
               "plan s", "MB", "step ms");
        return argc == 1 ? 0 : 2;
    }
    const char *name = strrchr(argv[3], '/') ? strrchr(argv[3], '/') + 1 : argv[3];
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster;
    sf_graph *graph;
    sf_plan *plan;
    double begin = sf_now();
    if (sf_cluster_open(argv[1], diag, &cluster) != SF_OK ||
        sf_load(argv[3], NULL, diag, &graph) != SF_OK)
        return fail(diag);
    double reading = sf_now() - begin;
    begin = sf_now();
    sf_plan_options options = {.cluster = cluster, .level = atoi(argv[2]), .margin = -1};
    sf_status status = sf_plan_search(graph, &options, diag, &plan);
    if (status == SF_EMISMATCH) {
        sf_diag_clear(diag);
        begin = sf_now();
        options.memory = INT64_MAX / 1024;
        status = sf_plan_search(graph, &options, diag, &plan);
    }
    if (status != SF_OK)
        return fail(diag);
    double planning = sf_now() - begin;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%-28.28s %8zu %10s %3s %8.2f %8.2f %7ld %11.1f%s\n", name, graph->nnodes, argv[1],
           argv[2], reading, planning, usage.ru_maxrss / 1024, 1e3 * plan->predicted->seconds,
           options.memory ? "*" : "");
    sf_plan_free(plan);
    sf_graph_free(graph);
    sf_cluster_free(cluster);
    sf_diag_free(diag);
    return 0;
}
