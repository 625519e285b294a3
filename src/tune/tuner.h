/* Finds the best of many settings in few trials.
 *
 * A point has a place along each of some dimensions. Places along an ordered dimension are near
 * each other if their numbers are; those of another are equal or not. Not every combination of
 * places is a point: a space may have any form.
 *
 * A tuner repeatedly proposes a point and receives its result. The proposals depend on the results,
 * so an interrupted run resumes by passing the same results once more.
 *
 *     exhaustive    all, in their order
 *     model         Gaussian processes of time and of memory (tune/process.h): the largest expected
 *                   improvement of the best, times its probability to fit; it ends when the
 *                   expected improvement is small
 */
#ifndef SF_TUNE_TUNER_H
#define SF_TUNE_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct sf_points {
    size_t count;
    int ndims;
    const int *places;   /* by dimension: how many there are */
    const bool *ordered; /* by dimension */
    const int *at; /* point * ndims + dimension: the place, from 0 on; -1: none, as of a variable
                            that other values of others leave out */
} sf_points;

static inline int sf_place(const sf_points *points, size_t point, int dim)
{
    return points->at[point * (size_t)points->ndims + (size_t)dim];
}

/* The result of a point. */
typedef struct sf_observed {
    bool known;
    double seconds; /* infinite: it does not fit, or cannot be at all */
    double memory;  /* as a share of the available memory; 0: not known */
} sf_observed;

typedef struct sf_tuner sf_tuner;

/* The name is one of the above, NULL: "model". NULL where there is none of that name. Lives in the arena, as the points must. */
sf_tuner *sf_tuner_new(const char *name, const sf_points *points, sf_arena *arena);

/* The names, by number; NULL past the last. */
const char *sf_tuner_name(int index);

/* The next point, which has no result yet. False: no point is worth a trial. */
bool sf_tuner_ask(sf_tuner *tuner, size_t *point);
void sf_tuner_observe(sf_tuner *tuner, size_t point, sf_observed observed);

/* The fastest of those with a result; the number of points if none fits. */
size_t sf_tuner_best(const sf_tuner *tuner);

#endif
