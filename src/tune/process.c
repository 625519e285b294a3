#include "tune/process.h"

#include <math.h>

#include "tune/algorithm.h"

/* Of the observed variance, the share of rounding and measurement errors. */
static const double NOISE = 1e-4;

static double covariance(const sf_process *process, size_t a, size_t b)
{
    double squares = 0;
    for (int d = 0; d < process->points->ndims; d++) {
        double apart = sf_points_apart(process->points, a, b, d) / process->lengths[d];
        squares += apart * apart;
    }
    double r = sqrt(5 * squares);
    return (1 + r + r * r / 3) * exp(-r);
}

/* Solves root * x = b in place. */
static void solve_down(const double *root, size_t count, double *x)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++)
            x[i] -= root[i * count + j] * x[j];
        x[i] /= root[i * count + i];
    }
}

/* Solves transpose(root) * x = b in place. */
static void solve_up(const double *root, size_t count, double *x)
{
    for (size_t i = count; i-- > 0;) {
        for (size_t j = i + 1; j < count; j++)
            x[i] -= root[j * count + i] * x[j];
        x[i] /= root[i * count + i];
    }
}

static void factor(sf_process *process)
{
    size_t n = process->count;
    double *root = process->root;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = covariance(process, process->seen[i], process->seen[j]);
            if (i == j)
                sum += NOISE;
            for (size_t k = 0; k < j; k++)
                sum -= root[i * n + k] * root[j * n + k];
            root[i * n + j] = i == j ? sqrt(fmax(sum, NOISE * NOISE)) : sum / root[j * n + j];
        }
}

/* Fits with the current lengths, and returns the likelihood of the values: a logarithm. */
static double fit(sf_process *process, const double *values)
{
    size_t n = process->count;
    double likely = 0;
    factor(process);
    for (size_t i = 0; i < n; i++)
        process->weigh[i] = (values[i] - process->mean) / process->scale;
    solve_down(process->root, n, process->weigh);
    for (size_t i = 0; i < n; i++)
        likely -= process->weigh[i] * process->weigh[i] / 2 + log(process->root[i * n + i]);
    solve_up(process->root, n, process->weigh);
    return likely;
}

/* One dimension after the other, a few times. Few points say little of lengths: longer ones come first. */
static void choose_lengths(sf_process *process, const double *values)
{
    static const double lengths[] = {1.6, 0.8, 0.4, 0.2};
    double best = fit(process, values);
    for (int round = 0; round < 2; round++)
        for (int d = 0; d < process->points->ndims; d++) {
            double kept = process->lengths[d];
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                process->lengths[d] = lengths[i];
                double likely = fit(process, values);
                if (likely > best + 1e-9) {
                    best = likely;
                    kept = lengths[i];
                }
            }
            process->lengths[d] = kept;
        }
    fit(process, values);
}

static void measure(sf_process *process, const double *values)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < process->count; i++)
        sum += values[i];
    process->mean = sum / (double)process->count;
    for (size_t i = 0; i < process->count; i++)
        squares += (values[i] - process->mean) * (values[i] - process->mean);
    process->scale = fmax(sqrt(squares / (double)process->count), 1e-6);
}

sf_process *sf_process_new(const sf_points *points, size_t count, const size_t *seen,
                           const double *values, sf_arena *arena)
{
    sf_process *process = SF_NEW(arena, sf_process);
    size_t n = count < SF_PROCESS_SEEN ? count : SF_PROCESS_SEEN;
    *process = (sf_process){.points = points,
                            .count = n,
                            .seen = sf_arena_copy(arena, seen, n * sizeof *seen),
                            .lengths = SF_ARRAY(arena, points->ndims + 1, double),
                            .root = SF_ARRAY(arena, n * n, double),
                            .weigh = SF_ARRAY(arena, n, double),
                            .room = SF_ARRAY(arena, n, double)};
    for (int d = 0; d < points->ndims; d++)
        process->lengths[d] = 0.8;
    measure(process, values);
    choose_lengths(process, values);
    return process;
}

void sf_process_expect(const sf_process *process, size_t point, double *mean, double *deviation)
{
    double sum = 0, rest = 1 + NOISE;
    for (size_t i = 0; i < process->count; i++) {
        process->room[i] = covariance(process, point, process->seen[i]);
        sum += process->room[i] * process->weigh[i];
    }
    solve_down(process->root, process->count, process->room);
    for (size_t i = 0; i < process->count; i++)
        rest -= process->room[i] * process->room[i];
    *mean = process->mean + process->scale * sum;
    *deviation = process->scale * sqrt(fmax(rest, 0));
}

double sf_normal_below(double x)
{
    return erfc(-x / sqrt(2)) / 2;
}

double sf_normal_density(double x)
{
    return exp(-x * x / 2) / sqrt(2 * acos(-1));
}
