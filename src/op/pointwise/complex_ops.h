/* Complex numbers: in memory, and the functions of them, in double. They are the principal values, cut
 * where C's are; products are the plain formula, without C's search for infinities, as XLA's are. */
#ifndef SF_OP_POINTWISE_COMPLEX_OPS_H
#define SF_OP_POINTWISE_COMPLEX_OPS_H

#include <complex.h>
#undef complex /* it is the name of an op */
#undef I

#include "ir/dtype.h"

typedef double _Complex sf_complex;

/* Elements of any type; a real number has the imaginary part 0, and loses it when it is stored as
 * real. */
void sf_complex_load(sf_dtype dtype, const void *data, int64_t first, int64_t count,
                     sf_complex *out);
void sf_complex_store(sf_dtype dtype, void *data, int64_t first, int64_t count,
                      const sf_complex *in);

/* As C11's CMPLX, which not every compiler has: a complex number is an array of its parts (6.2.5). */
static inline sf_complex sf_complex_make(double real, double imag)
{
    union {
        double parts[2];
        sf_complex number;
    } both = {{real, imag}};
    return both.number;
}

static inline double sf_complex_real(sf_complex x)
{
    return creal(x);
}

static inline double sf_complex_imag(sf_complex x)
{
    return cimag(x);
}

static inline sf_complex sf_complex_mul(sf_complex x, sf_complex y)
{
    double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
    return sf_complex_make(a * c - b * d, a * d + b * c);
}

double sf_complex_abs(sf_complex x);
sf_complex sf_complex_div(sf_complex x, sf_complex y);
sf_complex sf_complex_pow(sf_complex x, sf_complex y);

sf_complex sf_complex_acos(sf_complex x);
sf_complex sf_complex_acosh(sf_complex x);
sf_complex sf_complex_asin(sf_complex x);
sf_complex sf_complex_asinh(sf_complex x);
sf_complex sf_complex_atan(sf_complex x);
sf_complex sf_complex_atanh(sf_complex x);
sf_complex sf_complex_cos(sf_complex x);
sf_complex sf_complex_cosh(sf_complex x);
sf_complex sf_complex_exp(sf_complex x);
sf_complex sf_complex_expm1(sf_complex x);
sf_complex sf_complex_log(sf_complex x);
sf_complex sf_complex_log1p(sf_complex x);
sf_complex sf_complex_logistic(sf_complex x);
sf_complex sf_complex_rsqrt(sf_complex x);
sf_complex sf_complex_sign(sf_complex x);
sf_complex sf_complex_sin(sf_complex x);
sf_complex sf_complex_sinh(sf_complex x);
sf_complex sf_complex_sqrt(sf_complex x);
sf_complex sf_complex_tan(sf_complex x);
sf_complex sf_complex_tanh(sf_complex x);

#endif
