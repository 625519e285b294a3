/* How fast the CPU engine runs a step, and in how much memory.
 *
 *     step_bench [--threads N] [--seconds S] [--profile] STEP
 *
 * Arguments get small values of their own; the time is the best of the steps that fit into S seconds
 * (at least three), the memory what the engine says it needs. Prints a line of JSON.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "run/runner.h"
#include "sheaf/graph.h"

/* The same values as in bench/jax_step.py. */
static void fill(sf_tensor tensor, uint32_t argument)
{
    for (int64_t i = 0; i < tensor.type->count; i++) {
        if (sf_is_float(tensor.type->dtype))
            sf_store_f64(tensor.type->dtype, tensor.data, i,
                         0.02 * sin(0.1 * (double)i + (double)argument));
        else
            sf_store_i64(tensor.type->dtype, tensor.data, i, i % 7);
    }
}

static int fail_with(sf_diag *diag)
{
    fprintf(stderr, "%s\n", sf_diag_text(diag, 0));
    return 1;
}

int main(int argc, char **argv)
{
    sf_runner_options options = {0};
    double seconds = 5;
    int at = 1, profile = 0;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--profile") == 0)
            profile = 1;
        else if (strcmp(argv[at], "--threads") == 0 && at + 1 < argc)
            options.with.threads = atoi(argv[++at]);
        else if (strcmp(argv[at], "--seconds") == 0 && at + 1 < argc)
            seconds = atof(argv[++at]);
        else
            break;
    }
    if (at != argc - 1) {
        fprintf(stderr, "usage: step_bench [--threads N] [--seconds S] [--profile] STEP\n");
        return 2;
    }
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    sf_runner runner;
    double start = sf_now();
    if (sf_load(argv[at], NULL, diag, &graph) != SF_OK ||
        sf_runner_open(graph, &options, diag, &runner) != SF_OK)
        return fail_with(diag);
    double ready = sf_now() - start, best = INFINITY;
    sf_engine *engine = runner.engine;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_tensor argument;
        if (sf_engine_lend(engine, i, true, diag, &argument) != SF_OK)
            return fail_with(diag);
        fill(argument, i);
        if (sf_engine_give_back(engine, i, diag) != SF_OK)
            return fail_with(diag);
    }
    int steps = 0;
    for (start = sf_now(); steps < 3 || sf_now() - start < seconds; steps++) {
        double before = sf_now();
        if (sf_engine_step(engine, diag) != SF_OK)
            return fail_with(diag);
        double took = sf_now() - before;
        best = took < best ? took : best;
    }
    printf("{\"step_ms\": %.3f, \"ready_s\": %.3f, \"memory_mb\": %.1f, \"threads\": %d, "
           "\"steps\": %d}\n",
           best * 1e3, ready, (double)sf_engine_memory(engine) / 1e6, sf_engine_threads(engine),
           steps);
    if (profile) {
        sf_buf text = {0};
        sf_engine_profile(engine, &text);
        fputs(text.text, stderr);
    }
    return 0;
}
