#include "cluster/gpu_curves.h"

#include <math.h>

const char *sf_math_name(sf_math math)
{
    static const char *const names[SF_MATH_COUNT] = {"f64", "f32", "tf32", "bf16", "f16", "f8"};
    return names[math];
}

const char *sf_unit_name(sf_unit unit)
{
    static const char *const names[SF_UNIT_COUNT] = {"others",
                                                     "convolutions",
                                                     "strided_convolutions",
                                                     "transposed_convolutions",
                                                     "kernel_gradients",
                                                     "strided_gradients",
                                                     "attention",
                                                     "attention_gradients"};
    return names[unit];
}

const char *sf_touch_name(sf_touch touch)
{
    static const char *const names[SF_TOUCH_COUNT] = {"loops", "repeats", "moves"};
    return names[touch];
}

static double product_at(const sf_depths *d, double depth, double flops)
{
    int above = 0;
    while (above < d->count && d->depths[above] < depth)
        above++;
    if (above == 0 || above == d->count)
        return sf_curve_at(&d->curves[above == 0 ? 0 : d->count - 1], flops);
    double low = sf_curve_at(&d->curves[above - 1], flops),
           high = sf_curve_at(&d->curves[above], flops);
    double part = log(depth / d->depths[above - 1]) / log(d->depths[above] / d->depths[above - 1]);
    return low * pow(high / low, part);
}

double sf_gpu_seconds(const sf_gpu *gpu, sf_unit unit, sf_math math, double depth, double flops)
{
    if (unit != SF_UNIT_OTHER && gpu->units[unit][math].count > 0)
        return sf_curve_at(&gpu->units[unit][math], flops);
    return gpu->products[math].count > 0 ? product_at(&gpu->products[math], depth, flops) : 0;
}

/* Parts may be less deep. Between two depths the time of a product is between those at both. */
static double least_of_depths(const sf_depths *d, double depth, double flops)
{
    double least = sf_curve_least(&d->curves[0], flops);
    for (int i = 1; i < d->count && d->depths[i - 1] < depth; i++)
        least = fmin(least, sf_curve_least(&d->curves[i], flops));
    return least;
}

double sf_gpu_least(const sf_gpu *gpu, sf_unit unit, sf_math math, double depth, double flops)
{
    double least = HUGE_VAL;
    if (unit != SF_UNIT_OTHER && gpu->units[unit][math].count > 0)
        least = sf_curve_least(&gpu->units[unit][math], flops);
    if (gpu->products[math].count > 0)
        least = fmin(least, least_of_depths(&gpu->products[math], depth, flops));
    return isinf(least) ? 0 : least;
}
