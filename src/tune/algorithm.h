/* Within tune/: the interface of an algorithm. */
#ifndef SF_TUNE_ALGORITHM_H
#define SF_TUNE_ALGORITHM_H

#include "tune/tuner.h"

struct sf_tuner {
    const sf_points *points;
    sf_arena *arena;
    bool (*ask)(sf_tuner *tuner, size_t *point);
    sf_observed *observed; /* by point */
    size_t ntold;          /* how many are known */
};

/* How far two points are from each other along a dimension, as a share of its width; places of an unordered one are alike
 * or far. */
double sf_points_apart(const sf_points *points, size_t a, size_t b, int dim);

bool sf_ask_model(sf_tuner *tuner, size_t *point);

#endif
