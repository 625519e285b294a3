#include "op/pointwise/complex_ops.h"

#include <math.h>

void sf_complex_load(sf_dtype dtype, const void *data, int64_t first, int64_t count,
                     sf_complex *out)
{
    double *parts = (double *)out;
    if (sf_is_complex(dtype)) {
        sf_load_f64s(sf_part_of(dtype), data, 2 * first, 2 * count, parts);
        return;
    }
    sf_load_f64s(dtype, data, first, count, parts);
    for (int64_t i = count - 1; i >= 0; i--)
        out[i] = sf_complex_make(parts[i], 0);
}

void sf_complex_store(sf_dtype dtype, void *data, int64_t first, int64_t count,
                      const sf_complex *in)
{
    if (sf_is_complex(dtype)) {
        sf_store_f64s(sf_part_of(dtype), data, 2 * first, 2 * count, (const double *)in);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        sf_store_f64(dtype, data, first + i, creal(in[i]));
}

double sf_complex_abs(sf_complex x)
{
    return cabs(x);
}

sf_complex sf_complex_div(sf_complex x, sf_complex y)
{
    return x / y;
}

/* Powers of zero have no logarithm to come from. */
static sf_complex power_of_zero(sf_complex y)
{
    if (creal(y) == 0 && cimag(y) == 0)
        return 1;
    if (creal(y) > 0)
        return 0;
    return sf_complex_make((double)NAN, (double)NAN);
}

sf_complex sf_complex_pow(sf_complex x, sf_complex y)
{
    bool is_zero = creal(x) == 0 && cimag(x) == 0;
    return is_zero ? power_of_zero(y) : cpow(x, y);
}

sf_complex sf_complex_acos(sf_complex x)
{
    return cacos(x);
}

sf_complex sf_complex_acosh(sf_complex x)
{
    return cacosh(x);
}

sf_complex sf_complex_asin(sf_complex x)
{
    return casin(x);
}

sf_complex sf_complex_asinh(sf_complex x)
{
    return casinh(x);
}

sf_complex sf_complex_atan(sf_complex x)
{
    return catan(x);
}

sf_complex sf_complex_atanh(sf_complex x)
{
    return catanh(x);
}

sf_complex sf_complex_cos(sf_complex x)
{
    return ccos(x);
}

sf_complex sf_complex_cosh(sf_complex x)
{
    return ccosh(x);
}

sf_complex sf_complex_exp(sf_complex x)
{
    return cexp(x);
}

/* exp(a) cos(b) - 1 = expm1(a) cos(b) - 2 sin(b / 2)^2, in which nothing cancels near zero. */
sf_complex sf_complex_expm1(sf_complex x)
{
    double a = creal(x), b = cimag(x), half = sin(b / 2);
    return sf_complex_make(expm1(a) * cos(b) - 2 * half * half, exp(a) * sin(b));
}

sf_complex sf_complex_log(sf_complex x)
{
    return clog(x);
}

/* |1 + x|^2 = 1 + (a^2 + 2a + b^2), so near zero the logarithm is that of one and something small. */
sf_complex sf_complex_log1p(sf_complex x)
{
    double a = creal(x), b = cimag(x);
    if (fabs(a) > 0.5 || fabs(b) > 0.5)
        return clog(sf_complex_make(1 + a, b));
    return sf_complex_make(log1p(a * (2 + a) + b * b) / 2, atan2(b, 1 + a));
}

sf_complex sf_complex_logistic(sf_complex x)
{
    return sf_complex_div(1, 1 + cexp(-x));
}

sf_complex sf_complex_rsqrt(sf_complex x)
{
    return sf_complex_div(1, csqrt(x));
}

sf_complex sf_complex_sign(sf_complex x)
{
    double size = cabs(x);
    return size == 0 ? x : sf_complex_make(creal(x) / size, cimag(x) / size);
}

sf_complex sf_complex_sin(sf_complex x)
{
    return csin(x);
}

sf_complex sf_complex_sinh(sf_complex x)
{
    return csinh(x);
}

sf_complex sf_complex_sqrt(sf_complex x)
{
    return csqrt(x);
}

sf_complex sf_complex_tan(sf_complex x)
{
    return ctan(x);
}

sf_complex sf_complex_tanh(sf_complex x)
{
    return ctanh(x);
}
