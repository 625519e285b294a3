/* What kernels that stand for several ops bring a step on the CPU engine.
 *
 *     kernel_bench [--threads N] [--steps N] STEP...
 *
 * The step without them and with all of them, in turns in one process: processor time of a step, the least and the median, and the
 * memory that the engine says it needs. Prints a row for each step.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run/runner.h"
#include "sheaf/graph.h"

enum { MOST_STEPS = 64 };

typedef struct side {
    sf_runner runner;
    double seconds[MOST_STEPS];
} side;

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Small values, others in each argument. */
static sf_status fill(sf_engine *engine, uint32_t arguments, sf_diag *diag)
{
    for (uint32_t a = 0; a < arguments; a++) {
        sf_tensor t;
        SF_TRY(sf_engine_lend(engine, a, true, diag, &t));
        for (int64_t i = 0; i < t.type->count; i++) {
            if (sf_is_float(t.type->dtype))
                sf_store_f64(t.type->dtype, t.data, i, 0.02 * sin(0.1 * (double)i + (double)a));
            else
                sf_store_i64(t.type->dtype, t.data, i, i % 7);
        }
        SF_TRY(sf_engine_give_back(engine, a, diag));
    }
    return SF_OK;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static sf_status measure(const char *path, const sf_runner_options *options, int steps,
                         sf_diag *diag)
{
    static const sf_kernel_choice choices[] = {SF_KERNELS_NONE, SF_KERNELS_ALL};
    side sides[2] = {0};
    sf_graph *graph;
    SF_TRY(sf_load(path, NULL, diag, &graph));
    for (int s = 0; s < 2; s++) {
        graph->kernels = choices[s];
        SF_TRY(sf_runner_open(graph, options, diag, &sides[s].runner));
        SF_TRY(fill(sides[s].runner.engine, graph->top->narguments, diag));
        SF_TRY(sf_engine_step(sides[s].runner.engine, diag));
    }
    for (int i = 0; i < steps; i++)
        for (int s = 0; s < 2; s++) {
            double start = processor_seconds();
            SF_TRY(sf_engine_step(sides[s].runner.engine, diag));
            sides[s].seconds[i] = processor_seconds() - start;
        }
    const char *name = strrchr(path, '/');
    printf("%-32.32s", name ? name + 1 : path);
    for (int s = 0; s < 2; s++) {
        qsort(sides[s].seconds, (size_t)steps, sizeof(double), compare_seconds);
        printf(" %9.2f %9.2f %8.1f", sides[s].seconds[0] * 1e3, sides[s].seconds[steps / 2] * 1e3,
               (double)sf_engine_memory(sides[s].runner.engine) / 1e6);
    }
    printf(" %7.3f %7.3f\n", sides[0].seconds[0] / sides[1].seconds[0],
           sides[0].seconds[steps / 2] / sides[1].seconds[steps / 2]);
    for (int s = 0; s < 2; s++)
        sf_runner_close(&sides[s].runner);
    sf_graph_free(graph);
    return SF_OK;
}

int main(int argc, char **argv)
{
    sf_runner_options options = {.with = {.threads = 1}};
    int at = 1, steps = 7;
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        if (strcmp(argv[at], "--threads") == 0)
            options.with.threads = atoi(argv[at + 1]);
        else if (strcmp(argv[at], "--steps") == 0)
            steps = atoi(argv[at + 1]);
        else
            break;
    }
    if (at >= argc || argv[at][0] == '-' || steps < 1 || steps > MOST_STEPS) {
        fprintf(stderr, "usage: kernel_bench [--threads N] [--steps N] STEP...\n");
        return 2;
    }
    sf_diag *diag = sf_diag_new();
    printf("%-32s %9s %9s %8s %9s %9s %8s %7s %7s\n", "step", "none, ms", "median", "MB", "all, ms",
           "median", "MB", "ratio", "median");
    for (; at < argc; at++)
        if (measure(argv[at], &options, steps, diag) != SF_OK) {
            fprintf(stderr, "%s\n", sf_diag_text(diag, 0));
            return 1;
        }
    sf_diag_free(diag);
    return 0;
}
