/* Bayesian optimisation (Jones, Schonlau and Welch, 1998): the point of the largest expected improvement, by how likely it fits
 * (Gardner et al., 2014). Time and memory are modelled by their logarithms: shares count. */
#include <math.h>

#include "tune/algorithm.h"
#include "tune/process.h"

/* Less than this share of the best time is not worth a trial. */
static const double WORTH = 2e-4;

static double squared_distance(const sf_points *points, size_t a, size_t b)
{
    double squares = 0;
    for (int d = 0; d < points->ndims; d++) {
        double apart = sf_points_apart(points, a, b, d);
        squares += apart * apart;
    }
    return squares;
}

/* The distance of the point from the known ones; of equals, the one in the middle of its dimensions
 * wins. */
static double loneliness(const sf_tuner *tuner, size_t point)
{
    const sf_points *points = tuner->points;
    double nearest = points->ndims, middle = 0;
    for (size_t p = 0; p < points->count; p++)
        if (tuner->observed[p].known)
            nearest = fmin(nearest, squared_distance(points, p, point));
    for (int d = 0; d < points->ndims; d++) {
        double place = (sf_place(points, point, d) + 0.5) / (points->places[d] + 1e-9) - 0.5;
        middle += place * place;
    }
    return nearest - middle * 1e-3;
}

static bool ask_loneliest(const sf_tuner *tuner, size_t *point)
{
    double best = -(double)INFINITY;
    for (size_t p = 0; p < tuner->points->count; p++) {
        if (tuner->observed[p].known)
            continue;
        double lonely = loneliness(tuner, p);
        if (lonely > best) {
            best = lonely;
            *point = p;
        }
    }
    return isfinite(best);
}

typedef struct models {
    const sf_process *seconds, *memory; /* memory: NULL: none is known */
    double best;                        /* logarithm of the least time */
} models;

static const sf_process *fit_seconds(const sf_tuner *tuner)
{
    size_t n = 0;
    size_t *seen = SF_ARRAY(tuner->arena, tuner->ntold, size_t);
    double *values = SF_ARRAY(tuner->arena, tuner->ntold, double);
    for (size_t p = 0; p < tuner->points->count; p++)
        if (tuner->observed[p].known && tuner->observed[p].seconds < (double)INFINITY) {
            seen[n] = p;
            values[n++] = log(fmax(tuner->observed[p].seconds, 1e-12));
        }
    return n > 0 ? sf_process_new(tuner->points, n, seen, values, tuner->arena) : NULL;
}

static const sf_process *fit_memory(const sf_tuner *tuner)
{
    size_t n = 0;
    size_t *seen = SF_ARRAY(tuner->arena, tuner->ntold, size_t);
    double *values = SF_ARRAY(tuner->arena, tuner->ntold, double);
    for (size_t p = 0; p < tuner->points->count; p++)
        if (tuner->observed[p].known && tuner->observed[p].memory > 0) {
            seen[n] = p;
            values[n++] = log(tuner->observed[p].memory);
        }
    return n > 0 ? sf_process_new(tuner->points, n, seen, values, tuner->arena) : NULL;
}

/* The expected improvement at a point, as a share of the best time. */
static double expected_gain(const models *m, size_t point)
{
    double mean, deviation, fits = 1;
    if (m->memory) {
        sf_process_expect(m->memory, point, &mean, &deviation);
        fits = sf_normal_below(-mean / fmax(deviation, 1e-9)); /* all there is: the logarithm 0 */
    }
    sf_process_expect(m->seconds, point, &mean, &deviation);
    double less = m->best - mean, z = less / fmax(deviation, 1e-12);
    return fits * (less * sf_normal_below(z) + deviation * sf_normal_density(z));
}

static bool ask_models(const sf_tuner *tuner, const models *m, size_t *point)
{
    double most = WORTH;
    bool found = false;
    for (size_t p = 0; p < tuner->points->count; p++) {
        if (tuner->observed[p].known)
            continue;
        double gain = expected_gain(m, p);
        if (gain > most) {
            most = gain;
            *point = p;
            found = true;
        }
    }
    return found;
}

/* As long as nothing fits: where the least memory is expected. */
static bool ask_smallest(const sf_tuner *tuner, const sf_process *memory, size_t *point)
{
    double least = (double)INFINITY;
    for (size_t p = 0; p < tuner->points->count; p++) {
        double mean, deviation;
        if (tuner->observed[p].known)
            continue;
        sf_process_expect(memory, p, &mean, &deviation);
        if (mean < least) {
            least = mean;
            *point = p;
        }
    }
    return isfinite(least);
}

/* A few points that are far apart come first: one in the middle, and two for each dimension. */
bool sf_ask_model(sf_tuner *tuner, size_t *point)
{
    bool asked;
    if (tuner->ntold < 1 + 2 * (size_t)tuner->points->ndims)
        return ask_loneliest(tuner, point);
    sf_mark mark = sf_arena_mark(tuner->arena);
    models m = {.seconds = fit_seconds(tuner), .memory = fit_memory(tuner)};
    if (m.seconds) {
        m.best = log(fmax(tuner->observed[sf_tuner_best(tuner)].seconds, 1e-12));
        asked = ask_models(tuner, &m, point);
    } else {
        asked = m.memory ? ask_smallest(tuner, m.memory, point) : ask_loneliest(tuner, point);
    }
    sf_arena_reset(tuner->arena, mark);
    return asked;
}
