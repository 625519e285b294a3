#include "cluster/curve.h"

#include <math.h>

double sf_curve_at(const sf_curve *curve, double amount)
{
    int last = curve->count - 1, low = 0, high = last;
    if (amount <= curve->amounts[0])
        return curve->seconds[0];
    if (amount >= curve->amounts[last])
        return curve->seconds[last] * (amount / curve->amounts[last]);
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (curve->amounts[middle] <= amount)
            low = middle;
        else
            high = middle;
    }
    double x0 = curve->amounts[low], x1 = curve->amounts[high];
    double y0 = curve->seconds[low], y1 = curve->seconds[high];
    return y0 * exp(log(amount / x0) / log(x1 / x0) * log(y1 / y0));
}

/* A power law is steepest at an end of it, so no part between two points is faster than one at either. */
double sf_curve_least(const sf_curve *curve, double amount)
{
    double pace = amount > 0 ? sf_curve_at(curve, amount) / amount : 0;
    for (int i = 0; i < curve->count && curve->amounts[i] < amount; i++)
        pace = fmin(pace, curve->seconds[i] / curve->amounts[i]);
    return pace * amount;
}

sf_curve sf_curve_fit(int count, const double *amounts, const double *seconds, sf_arena *arena)
{
    SF_ASSERT(count > 0 && count <= SF_CURVE_POINTS);
    double *x = sf_arena_copy(arena, amounts, (size_t)count * sizeof *x);
    double *y = sf_arena_copy(arena, seconds, (size_t)count * sizeof *y);
    for (int i = count - 2; i >= 0; i--)
        if (y[i] > y[i + 1])
            y[i] = y[i + 1];
    return (sf_curve){count, x, y};
}
