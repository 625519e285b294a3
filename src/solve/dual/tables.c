#include "solve/dual/dual.h"

#include <math.h>
#include <string.h>

static size_t cells_of(const sf_problem *problem, const sf_edge *edge)
{
    return (size_t)sf_problem_count(problem, edge->a) * sf_problem_count(problem, edge->b);
}

/* The sum of the largest finite cost of each node and edge, and then some. */
static double more_than_all(const sf_problem *problem)
{
    double sum = 1;
    for (uint32_t v = 0; v < problem->nnodes; v++) {
        double most = 0;
        for (uint32_t s = problem->first[v]; s < problem->first[v + 1]; s++)
            if (problem->cost[s] < SF_FORBIDDEN)
                most = fmax(most, fabs((double)problem->cost[s]));
        sum += most;
    }
    for (uint32_t e = 0; e < problem->nedges; e++) {
        const sf_edge *edge = &problem->edges[e];
        double most = 0;
        for (size_t c = 0; c < cells_of(problem, edge); c++)
            if (edge->cost[c] < SF_FORBIDDEN)
                most = fmax(most, fabs((double)edge->cost[c]));
        sum += most;
    }
    return sum;
}

static double finite_cost(const sf_tables *tables, int64_t cost)
{
    return cost < SF_FORBIDDEN ? (double)cost : tables->forbidden;
}

static void copy_edge(sf_tables *tables, uint32_t e)
{
    const sf_edge *edge = &tables->problem->edges[e];
    uint32_t rows = sf_problem_count(tables->problem, edge->a);
    uint32_t columns = sf_problem_count(tables->problem, edge->b);
    float *straight = tables->cells + 2 * tables->at[e];
    float *turned = straight + (size_t)rows * columns;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < columns; j++) {
            float cost = (float)finite_cost(tables, edge->cost[(size_t)i * columns + j]);
            straight[(size_t)i * columns + j] = cost;
            turned[(size_t)j * rows + i] = cost;
        }
}

void sf_tables_init(sf_tables *tables, const sf_problem *problem, sf_arena *arena)
{
    uint32_t strategies = problem->first[problem->nnodes];
    *tables = (sf_tables){.problem = problem, .forbidden = more_than_all(problem)};
    tables->unary = SF_ARRAY(arena, strategies, double);
    tables->at = SF_ARRAY(arena, problem->nedges + 1, size_t);
    for (uint32_t e = 0; e < problem->nedges; e++)
        tables->at[e + 1] = tables->at[e] + cells_of(problem, &problem->edges[e]);
    tables->cells = SF_ARRAY(arena, 2 * tables->at[problem->nedges], float);
    for (uint32_t s = 0; s < strategies; s++)
        tables->unary[s] = finite_cost(tables, problem->cost[s]);
    for (uint32_t e = 0; e < problem->nedges; e++)
        copy_edge(tables, e);
    for (uint32_t v = 0; v < problem->nnodes; v++)
        if (sf_problem_count(problem, v) > tables->widest)
            tables->widest = sf_problem_count(problem, v);
}

static inline __attribute__((always_inline)) void least_sums(const double *value, const float *rows,
                                                             uint32_t count, uint32_t columns,
                                                             double *restrict out)
{
    for (uint32_t i = 0; i < columns; i++)
        out[i] = value[0] + (double)rows[i];
    for (uint32_t j = 1; j < count; j++) {
        const float *row = rows + (size_t)j * columns;
        double base = value[j];
        for (uint32_t i = 0; i < columns; i++) {
            double sum = base + (double)row[i];
            out[i] = sum < out[i] ? sum : out[i];
        }
    }
}

/* Half of all time is spent here. Sums and minima are the same in vectors of any length. */
#if defined(__x86_64__)
__attribute__((target("avx2"))) static void least_sums_avx2(const double *value, const float *rows,
                                                            uint32_t count, uint32_t columns,
                                                            double *out)
{
    least_sums(value, rows, count, columns, out);
}
#endif

void sf_least_sums(const double *value, const float *rows, uint32_t count, uint32_t columns,
                   double *out)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        least_sums_avx2(value, rows, count, columns, out);
        return;
    }
#endif
    least_sums(value, rows, count, columns, out);
}

/* The best strategy of a node, all others as they are; the present one if none is better. */
static uint32_t best_alone(const sf_tables *tables, const double *unary, uint32_t v, double *sum,
                           const uint32_t *choice)
{
    const sf_problem *problem = tables->problem;
    uint32_t count = sf_problem_count(problem, v), best = choice[v];
    memcpy(sum, unary + problem->first[v], count * sizeof *sum);
    for (uint32_t l = problem->link_first[v]; l < problem->link_first[v + 1]; l++) {
        uint32_t e = problem->links[l], other = sf_edge_other(&problem->edges[e], v);
        const float *row = sf_tables_view(tables, e, v) + (size_t)choice[other] * count;
        for (uint32_t i = 0; i < count; i++)
            sum[i] += (double)row[i];
    }
    for (uint32_t i = 0; i < count; i++)
        if (sum[i] < sum[best])
            best = i;
    return best;
}

int64_t sf_tables_descend(const sf_tables *tables, const double *unary, double *scratch,
                          uint32_t *choice)
{
    enum { MOST_ROUNDS = 50 };
    const sf_problem *problem = tables->problem;
    bool better = true;
    int64_t work = 0;
    for (int round = 0; round < MOST_ROUNDS && better; round++) {
        better = false;
        for (uint32_t v = 0; v < problem->nnodes; v++) {
            uint32_t best = best_alone(tables, unary, v, scratch, choice);
            better = better || best != choice[v];
            choice[v] = best;
            work += (int64_t)sf_problem_count(problem, v) *
                    (problem->link_first[v + 1] - problem->link_first[v] + 1);
        }
    }
    return work;
}
