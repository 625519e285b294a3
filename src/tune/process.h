/* A Gaussian process (Rasmussen and Williams, 2006): the expected value of a smooth function at
 * points where it was not evaluated, and the error of that. Its kernel is Matern's with 5/2, with a
 * length of its own for each dimension; lengths are those, of a few, that maximise the likelihood
 * of the observations. */
#ifndef SF_TUNE_PROCESS_H
#define SF_TUNE_PROCESS_H

#include "tune/tuner.h"

/* Beyond that, the last of them are left out. */
enum { SF_PROCESS_SEEN = 256 };

typedef struct sf_process {
    const sf_points *points;
    size_t count;
    const size_t *seen; /* points that were looked at */
    double mean, scale; /* of the observations */
    double *lengths;    /* by dimension, of a space that is 1 wide */
    double *root,
        *weigh; /* of the covariance: its Cholesky root, count x count; and its inverse times the values */
    double *room; /* for one more row */
} sf_process;

/* Of `count` values, at least one, seen at points. Lives in the arena. */
sf_process *sf_process_new(const sf_points *points, size_t count, const size_t *seen,
                           const double *values, sf_arena *arena);

void sf_process_expect(const sf_process *process, size_t point, double *mean, double *deviation);

/* The share of a normal distribution below x, and its density there. */
double sf_normal_below(double x);
double sf_normal_density(double x);

#endif
