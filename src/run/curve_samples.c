#include "run/curve_samples.h"

/* Half of the points there must be: from the first ones alone nothing can be said of larger amounts. */
void sf_series_keep(sf_series *s, double amount, double seconds, double spent, double growth,
                    bool *more)
{
    SF_ASSERT(s->count < SF_CURVE_POINTS);
    s->amounts[s->count] = amount;
    s->seconds[s->count++] = seconds > 1e-9 ? seconds : 1e-9; /* the clock may not advance */
    s->spent += spent;
    *more = s->count < (s->expected + 1) / 2 ||
            s->spent + SF_LEAST_SAMPLES * growth * seconds < 2 * s->meter->seconds;
}

sf_curve sf_series_fit(const sf_series *s)
{
    return sf_curve_fit(s->count, s->amounts, s->seconds, s->meter->arena);
}
