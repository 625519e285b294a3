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
    uint64_t state;        /* of chance */
    size_t from;           /* coordinate: the current point; the number of points: none yet */
};

/* A number below `count`, at random. */
static inline size_t sf_tuner_draw(sf_tuner *tuner, size_t count)
{
    tuner->state = tuner->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)((tuner->state >> 33) % count);
}

/* The distance of two points along a dimension, as a share of its width; places of an unordered one
 * are equal or far. */
double sf_points_apart(const sf_points *points, size_t a, size_t b, int dim);

bool sf_ask_coordinate(sf_tuner *tuner, size_t *point);
bool sf_ask_model(sf_tuner *tuner, size_t *point);

#endif
