/* Known points. */
#include <math.h>

#include "tune/algorithm.h"

double sf_points_apart(const sf_points *points, size_t a, size_t b, int dim)
{
    int here = sf_place(points, a, dim), there = sf_place(points, b, dim);
    if (here == there)
        return 0;
    if (!points->ordered[dim] || here < 0 || there < 0 || points->places[dim] < 2)
        return 1;
    return fabs((double)(here - there)) / (points->places[dim] - 1);
}

size_t sf_tuner_best(const sf_tuner *tuner)
{
    size_t best = tuner->points->count;
    double least = (double)INFINITY;
    for (size_t p = 0; p < tuner->points->count; p++)
        if (tuner->observed[p].known && tuner->observed[p].seconds < least) {
            least = tuner->observed[p].seconds;
            best = p;
        }
    return best;
}
