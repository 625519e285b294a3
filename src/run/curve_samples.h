/* Points of a curve as they are measured, until the time is up. */
#ifndef SF_RUN_CURVE_SAMPLES_H
#define SF_RUN_CURVE_SAMPLES_H

#include "run/measure.h"

enum { SF_LEAST_SAMPLES = 3 }; /* of a number */

typedef struct sf_series {
    const sf_meter *meter;
    int count, expected;
    double spent, amounts[SF_CURVE_POINTS], seconds[SF_CURVE_POINTS];
} sf_series;

/* Another point, for which `spent` seconds were spent. *more: whether there is time for one that takes `growth` times as
 * long. */
void sf_series_keep(sf_series *s, double amount, double seconds, double spent, double growth,
                    bool *more);

/* Likewise, of work that is measured now (measure.c). */
sf_status sf_series_measure(sf_series *s, double amount, sf_measured_work *work, void *context,
                            double growth, bool *more);

/* The curve through all points, in the arena of the meter. */
sf_curve sf_series_fit(const sf_series *s);

#endif
