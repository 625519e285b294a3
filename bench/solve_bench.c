/* How good and how fast the solver is.
 *
 *   solve_bench FILE SECONDS          a problem from a file: one row of the table
 *   solve_bench chain NODES           a chain with skips, 12 strategies, no limit; beside CBC
 *   solve_bench network NODES SECONDS twice as many edges as nodes, 12 strategies, a limit
 *
 * Without arguments, prints the head of the first table.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/machine.h"
#include "solve/solve.h"
#include "support/choices.h"

enum { STRATEGIES = 12, LIFETIME = 50, USAGE = 1000 };

static uint64_t state = 88172645463325252u;

static uint32_t below(uint32_t count)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 20) % count);
}

static void draw(int64_t *values, int count)
{
    for (int i = 0; i < count; i++)
        values[i] = below(1000);
}

static double peak_megabytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void add_nodes(sf_problem_builder *builder, uint32_t nodes, bool limited)
{
    int64_t values[STRATEGIES];
    for (uint32_t v = 0; v < nodes; v++) {
        draw(values, STRATEGIES);
        sf_problem_add_node(builder, STRATEGIES, values, NULL);
        draw(values, STRATEGIES);
        if (limited)
            sf_problem_add_use(builder, v, v, v + 1 + below(LIFETIME), values, NULL);
    }
    if (limited)
        sf_problem_set_limit(builder, (int64_t)LIFETIME / 2 * USAGE / 2 * 6 / 5);
}

static void add_edge(sf_problem_builder *builder, uint32_t a, uint32_t b)
{
    int64_t values[STRATEGIES * STRATEGIES];
    draw(values, STRATEGIES * STRATEGIES);
    sf_problem_add_edge(builder, a, b, values, NULL);
}

static void make_chain(uint32_t nodes, sf_arena *arena, sf_problem *out)
{
    sf_problem_builder builder = {.arena = arena};
    add_nodes(&builder, nodes, false);
    for (uint32_t v = 1; v < nodes; v++) {
        add_edge(&builder, v - 1, v);
        if (v % 3 == 0)
            add_edge(&builder, v - 2 - below(2), v);
    }
    sf_problem_finish(&builder, out, NULL);
}

static void make_network(uint32_t nodes, sf_arena *arena, sf_problem *out)
{
    sf_problem_builder builder = {.arena = arena};
    add_nodes(&builder, nodes, true);
    for (uint32_t v = 1; v < nodes; v++) {
        uint32_t near = 1 + below(20), far = 1 + below(200);
        add_edge(&builder, v - (near < v ? near : v), v);
        add_edge(&builder, v - (far < v ? far : v), v);
    }
    sf_problem_finish(&builder, out, NULL);
}

static int solve(const sf_problem *problem, double seconds, sf_arena *arena, sf_solve_result *out)
{
    sf_solve_options options = {.size = sizeof options, .seconds = seconds};
    sf_threads *threads = sf_threads_new(0);
    sf_status status = sf_solve(problem, &options, threads, arena, out, NULL);
    sf_threads_free(threads);
    return status == SF_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void print_row(const char *name, const sf_problem *problem, const sf_solve_result *result)
{
    printf("%-12s %7" PRIu32 " %7" PRIu32 " %16" PRId64 " %16" PRId64 " %9.4f %8.2f %8.0f\n", name,
           problem->nnodes, problem->nedges, result->feasible ? result->cost : -1, result->bound,
           100 * result->gap, result->seconds, peak_megabytes());
}

static int bench_file(const char *path, double seconds)
{
    sf_arena arena = {0};
    sf_problem problem;
    sf_solve_result result;
    sf_diag *diag = sf_diag_new();
    double began = sf_now();
    if (sf_problem_read(path, &arena, &problem, diag) != SF_OK) {
        fprintf(stderr, "%s\n", sf_diag_text(diag, 0));
        return EXIT_FAILURE;
    }
    double reading = sf_now() - began;
    int code = solve(&problem, seconds - reading, &arena, &result);
    result.seconds += reading;
    const char *slash = strrchr(path, '/');
    print_row(slash ? slash + 1 : path, &problem, &result);
    return code;
}

static int bench_network(uint32_t nodes, double seconds)
{
    sf_arena arena = {0};
    sf_problem problem;
    sf_solve_result result;
    make_network(nodes, &arena, &problem);
    int code = solve(&problem, seconds, &arena, &result);
    print_row("network", &problem, &result);
    return code;
}

static int bench_chain(uint32_t nodes, double cbc_seconds)
{
    sf_arena arena = {0};
    sf_problem problem;
    sf_solve_result result;
    int64_t other;
    make_chain(nodes, &arena, &problem);
    int code = solve(&problem, 60, &arena, &result);
    double before = sf_now();
    printf("chain of %5" PRIu32 " nodes, %5" PRIu32 " edges: cost %" PRId64 "%s in %.1f ms",
           problem.nnodes, problem.nedges, result.cost,
           result.stop == SF_STOP_OPTIMAL ? ", proven," : "", 1e3 * result.seconds);
    fflush(stdout);
    if (cbc_seconds > 0 && sf_ask_cbc(&problem, cbc_seconds, &other)) {
        double took = sf_now() - before;
        if (other >= SF_FORBIDDEN)
            printf("; CBC: not within %.0f s", cbc_seconds);
        else
            printf("; CBC: %" PRId64 " in %.1f s", other, took);
    }
    printf("\n");
    return code;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "chain") == 0)
        return bench_chain((uint32_t)atoi(argv[2]), argc > 3 ? atof(argv[3]) : 0);
    if (argc == 4 && strcmp(argv[1], "network") == 0)
        return bench_network((uint32_t)atoi(argv[2]), atof(argv[3]));
    if (argc == 3)
        return bench_file(argv[1], atof(argv[2]));
    printf("%-12s %7s %7s %16s %16s %9s %8s %8s\n", "problem", "nodes", "edges", "cost", "bound",
           "gap %", "seconds", "MB");
    return EXIT_SUCCESS;
}
