/* Measured times: seconds as a function of an amount (flops, bytes), known at some points.
 *
 * Between two points it is a power law, a straight line on paper with logarithmic axes. Below the
 * first point it is constant, the least time of the machine. Beyond the last it grows in proportion
 * to the amount. So it is continuous and never decreases. */
#ifndef SF_CLUSTER_CURVE_H
#define SF_CLUSTER_CURVE_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/json.h"

enum { SF_CURVE_POINTS = 64 };

/* 0 points: nothing was measured. Amounts are positive and increase, seconds are positive and do not
 * decrease. */
typedef struct sf_curve {
    int count; /* at most SF_CURVE_POINTS */
    const double *amounts, *seconds;
} sf_curve;

/* Seconds for an amount; the curve has a point. */
double sf_curve_at(const sf_curve *curve, double amount);

/* The least seconds for an amount, in parts of any size up to all of it. */
double sf_curve_least(const sf_curve *curve, double amount);

/* A curve through what was measured: `amounts` increase; where more took less time, the points before it
 * are taken to have been disturbed and brought down to it. `count` is 1 to SF_CURVE_POINTS. Lives in the
 * arena. */
sf_curve sf_curve_fit(int count, const double *amounts, const double *seconds, sf_arena *arena);

#endif
