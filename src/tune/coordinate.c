/* Randomised coordinate descent (Nesterov, 2012), on points: a step goes to the next place along one dimension. */
#include <stdlib.h>

#include "tune/algorithm.h"

static bool differs_only_in(const sf_points *points, size_t a, size_t b, int dim)
{
    for (int d = 0; d < points->ndims; d++)
        if (d != dim && sf_place(points, a, d) != sf_place(points, b, d))
            return false;
    return true;
}

/* The nearest point further up (1) or down (-1) along the dimension; the number of points: there is none. */
static size_t find_next(const sf_points *points, size_t from, int dim, int way)
{
    size_t found = points->count;
    int here = sf_place(points, from, dim), nearest = 0;
    for (size_t p = 0; p < points->count; p++) {
        int distance = (sf_place(points, p, dim) - here) * way;
        if (distance > 0 && differs_only_in(points, p, from, dim) &&
            (found == points->count || distance < nearest)) {
            found = p;
            nearest = distance;
        }
    }
    return found;
}

static bool is_better(const sf_tuner *tuner, size_t point, size_t than)
{
    return tuner->observed[point].known &&
           tuner->observed[point].seconds < tuner->observed[than].seconds;
}

/* Moves to better neighbours as far as they are known; else gives the next point to try. False: no
 * neighbour is better. */
static bool step(sf_tuner *tuner, size_t *ask, bool *moved)
{
    const sf_points *points = tuner->points;
    int ways = 2 * points->ndims, first = (int)sf_tuner_draw(tuner, (size_t)ways);
    size_t unknown = points->count;
    *moved = false;
    for (int i = 0; i < ways && !*moved; i++) {
        int way = (first + i) % ways;
        size_t next = find_next(points, tuner->from, way / 2, way % 2 ? 1 : -1);
        if (next == points->count)
            continue;
        *moved = is_better(tuner, next, tuner->from);
        if (*moved)
            tuner->from = next;
        else if (!tuner->observed[next].known && unknown == points->count)
            unknown = next;
    }
    *ask = unknown;
    return *moved || unknown < points->count;
}

static size_t draw_unknown(sf_tuner *tuner)
{
    size_t skip = sf_tuner_draw(tuner, tuner->points->count - tuner->ntold), p = 0;
    for (;; p++)
        if (!tuner->observed[p].known && skip-- == 0)
            return p;
}

bool sf_ask_coordinate(sf_tuner *tuner, size_t *point)
{
    bool moved = true;
    while (moved && tuner->from < tuner->points->count)
        if (!step(tuner, point, &moved))
            tuner->from = tuner->points->count;
    if (tuner->from < tuner->points->count)
        return true;
    tuner->from = *point = draw_unknown(tuner);
    return true;
}
