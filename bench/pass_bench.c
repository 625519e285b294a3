/* How long passes take: pass_bench CLUSTER DEVICES TURNS PASSES STEP. Prints a row: step, instructions, devices, turns, passes,
 * seconds of the clock and of the processor for the passes alone, the step time that is expected without and with them, and
 * GiB of a device. State is split over all devices (zero3), layers are computed again, the batch is taken in so many turns.
 * What does not fit is given 40 GiB more than it takes as it was lowered, so that there is something to decide. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/machine.h"
#include "local/local.h"
#include "pass/pass.h"
#include "run/cpu/cpu_target.h"
#include "sheaf/sheaf.h"

enum { CLUSTER = 1, DEVICES, TURNS, PASSES, STEP, ARGUMENTS };

typedef struct bench {
    sf_diag *diag;
    sf_arena arena;
    sf_cluster *cluster;
    sf_graph *graph;
    sf_plan *plan;
    sf_local *local;
    sf_costs *costs;
} bench;

static size_t count_insts(const sf_program *p)
{
    size_t count = p->ninsts;
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t b = 0; b < sf_body_count(&p->insts[i]); b++)
            count += count_insts(p->insts[i].nest->bodies[b]);
    return count;
}

static sf_status get_ready(bench *b, char **argv)
{
    sf_plan_spec pin = {
.size = sizeof pin, .recipe = "zero3",
        .ranks = atoi(argv[DEVICES]),
        .recompute = "layer",
        .micro_batches = atoi(argv[TURNS])};
    int size = pin.ranks;
    SF_TRY(sf_cluster_open(argv[CLUSTER], b->diag, &b->cluster));
    SF_TRY(sf_load(argv[STEP], NULL, b->diag, &b->graph));
    SF_TRY(sf_pin_step(b->graph, &pin, b->diag, &b->plan));
    SF_TRY(sf_costs_new(b->cluster, 1, &size, 0, &b->arena, b->diag, &b->costs));
    return sf_local_new(b->graph, b->plan, 0, b->diag, &b->local);
}

static sf_status run(bench *b, char **argv)
{
    sf_lower_options lowering = {.target = &sf_target_cpu, .mesh = &b->plan->mesh};
    sf_program *program = sf_lower(b->local->graph, &lowering, NULL);
    sf_pass_outcome outcomes[SF_PASSES_MOST + 2];
    sf_pass_list list;
    int count = 0;
    const char *name = strrchr(argv[STEP], '/') ? strrchr(argv[STEP], '/') + 1 : argv[STEP];
    sf_status status = sf_pass_list_read(argv[PASSES], &b->arena, b->diag, &list);
    const int64_t more = INT64_C(40) << 30, takes = sf_program_bytes(program);
    sf_pass_run how = {&list, b->costs, takes > sf_costs_memory(b->costs) ? takes + more : 0,
                       &b->arena};
    size_t insts = count_insts(program);
    double began = sf_now();
    clock_t busy = clock();
    if (status == SF_OK)
        status = sf_passes_run(program, &how, b->diag, outcomes, &count);
    double seconds = sf_now() - began, cpu = (double)(clock() - busy) / CLOCKS_PER_SEC;
    if (status == SF_OK)
        printf("%-28.28s %8zu %7s %5s %8.2f %8.2f %9.1f %9.1f %7.1f  %s\n", name, insts,
               argv[DEVICES], argv[TURNS], seconds, cpu, 1e3 * outcomes[0].seconds,
               1e3 * outcomes[count - 1].seconds,
               (double)outcomes[count - 1].bytes / (double)(INT64_C(1) << 30), argv[PASSES]);
    sf_program_free(program);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != ARGUMENTS) {
        printf("%-28s %8s %7s %5s %8s %8s %9s %9s %7s  %s\n", "step", "insts", "devices", "turns",
               "passes s", "CPU s", "none ms", "step ms", "GiB", "passes");
        return argc == 1 ? 0 : 2;
    }
    bench b = {.diag = sf_diag_new()};
    sf_status status = get_ready(&b, argv);
    if (status == SF_OK)
        status = run(&b, argv);
    if (status != SF_OK)
        fprintf(stderr, "%s\n", sf_diag_text(b.diag, 0));
    sf_local_free(b.local);
    sf_plan_free(b.plan);
    sf_graph_free(b.graph);
    sf_cluster_free(b.cluster);
    sf_arena_free(&b.arena);
    sf_diag_free(b.diag);
    return status == SF_OK ? 0 : 1;
}
