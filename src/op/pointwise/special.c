/* The functions of the CHLO dialect. Those that the C library lacks are computed here, to about the
 * precision of a double; formulas are named after the NIST Digital Library of Mathematical Functions
 * (DLMF). Where a function has a pole or no value, the result is what CHLO's own expansion gives. */
#include "op/pointwise/pointwise.h"

static const double pi = 3.14159265358979323846;

/* B(2j) / (2j)! for j = 1, 2, ...: the coefficients of the Euler-Maclaurin formula. */
static const double bernoulli[] = {
    8.3333333333333333e-02,  -1.3888888888888889e-03, 3.3068783068783069e-05,
    -8.2671957671957672e-07, 2.0876756987868099e-08,  -5.2841901386874932e-10,
    1.3382536530684679e-11,  -3.3896802963225829e-13, 8.5860620562778446e-15,
    -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19,
};
enum { NBERNOULLI = sizeof bernoulli / sizeof *bernoulli };

/* The Hurwitz zeta function for s > 1, q > 0: the first terms of its series, then the
 * Euler-Maclaurin formula for the rest (DLMF 25.11.28). The rest begins where its own terms fall
 * fast, at a = q + n of at least s + 10; before that the terms of the series may have become too small to
 * matter, which for large s is soon. */
static double hurwitz(double s, double q)
{
    double sum = 0, a = q;
    for (; a < s + 10; a += 1) {
        double term = pow(a, -s);
        sum += term;
        if (!(term > sum * 1e-17))
            return sum;
    }
    double power = pow(a, -s), rest = power * a / (s - 1) + power / 2;
    double rising = s / a; /* s (s + 1) ... (s + 2j - 2) / a^(2j - 1) */
    for (int j = 0; j < NBERNOULLI; j++) {
        rest += bernoulli[j] * rising * power;
        rising *= (s + 2 * j + 1) * (s + 2 * j + 2) / (a * a);
    }
    return sum + rest;
}

/* For q < 0, not an integer, and integer s: with f = q + n in (0, 1) the n terms below zero are, up
 * to a sign, the first n terms of the series at 1 - f. */
static double hurwitz_negative(double s, double q)
{
    double f = q - floor(q), below = hurwitz(s, 1 - f) - hurwitz(s, 1 - q);
    return hurwitz(s, f) + (fmod(s, 2) == 0 ? below : -below);
}

static double zeta(double s, double q)
{
    if (isnan(s) || isnan(q) || s < 1)
        return (double)NAN;
    if (s == 1)
        return (double)INFINITY;
    if (q > 0)
        return isinf(q) ? 0 : hurwitz(s, q);
    bool even = fmod(s, 2) == 0;
    if (q == floor(q))
        return even ? (double)INFINITY : (double)NAN;
    return s == floor(s) && isfinite(s) ? hurwitz_negative(s, q) : (double)NAN;
}

/* Digamma near its positive zero, where recurrence would cancel: the Taylor series there, with
 * coefficients (-1)^(n+1) zeta(n + 1, zero) (DLMF 5.15.1). The zero is the sum of two doubles. */
static const double digamma_zero = 1.4616321449683622, digamma_zero_low = 9.5499954299656977e-17;

static double digamma_near_zero(double x)
{
    double h = (x - digamma_zero) - digamma_zero_low, power = h, sum = 0;
    for (int n = 1; n < 60; n++) {
        double term = power * hurwitz(n + 1, digamma_zero);
        sum += n % 2 == 1 ? term : -term;
        if (fabs(term) <= fabs(sum) * 1e-17)
            break;
        power *= h;
    }
    return sum;
}

/* Recurrence up to 12, then the asymptotic series (DLMF 5.11.2) log x - 1/2x - sum B(2j) / 2j x^2j. */
static double digamma_positive(double x)
{
    if (fabs(x - digamma_zero) < 0.45)
        return digamma_near_zero(x);
    double sum = 0;
    for (; x < 12; x += 1)
        sum -= 1 / x;
    double inverse = 1 / (x * x), series = 0;
    double factorial = 1, power = inverse; /* (2j - 1)! and x^-2j */
    for (int j = 0; j < NBERNOULLI; j++) {
        series += bernoulli[j] * factorial * power;
        factorial *= (2 * j + 2) * (2 * j + 3);
        power *= inverse;
    }
    return sum + (log(x) - 0.5 / x - series);
}

static double digamma(double x)
{
    if (isnan(x) || (x <= 0 && x == floor(x)))
        return (double)NAN;
    if (x > 0)
        return isinf(x) ? x : digamma_positive(x);
    return digamma_positive(1 - x) - pi / tan(pi * (x - rint(x)));
}

/* (-1)^(n+1) n! zeta(n + 1, x), DLMF 5.15.1. */
static double polygamma(double n, double x)
{
    if (isnan(n) || n < 0 || n != floor(n))
        return (double)NAN;
    if (n == 0)
        return digamma(x);
    double value = zeta(n + 1, x);
    if (n > 170) { /* past the range of the factorial: in logarithms */
        int sign;
        value = copysign(exp(lgamma_r(n + 1, &sign) + log(fabs(value))), value);
    } else {
        value *= tgamma(n + 1);
    }
    return fmod(n, 2) == 1 ? value : -value;
}

/* Solves erf(x) = y by Halley's iteration x - r / (1 + x r) with r = (erf(x) - y) / erf'(x), which
 * triples the correct digits. Near one the residual is taken of the complements, which are exact
 * there. The first guess is Winitzki's, good to two digits everywhere but near zero. */
static double erf_inv_positive(double y)
{
    static const double a = 0.147;
    double x = y * sqrt(pi) / 2;
    if (y > 0.1) {
        double w = log((1 - y) * (1 + y)), t = 2 / (pi * a) + w / 2;
        x = sqrt(sqrt(t * t - w / a) - t);
    }
    for (int i = 0; i < 4; i++) {
        double residual = y < 0.5 ? erf(x) - y : (1 - y) - erfc(x);
        double r = residual * exp(x * x) * (sqrt(pi) / 2);
        x -= r / (1 + x * r);
    }
    return x;
}

static double erf_inv(double y)
{
    if (isnan(y) || fabs(y) > 1)
        return (double)NAN;
    if (fabs(y) == 1)
        return copysign((double)INFINITY, y);
    return y == 0 ? y : copysign(erf_inv_positive(fabs(y)), y);
}

/* exp(-|x|) I1(x). Up to 25 by the power series, whose terms are all positive (DLMF 10.25.2); beyond
 * by the asymptotic series (DLMF 10.40.1), whose smallest term is then below exp(-50). */
static double bessel_i1e(double x)
{
    double size = fabs(x), sum = 1, term = 1;
    if (isnan(x))
        return x;
    if (isinf(x))
        return copysign(0, x);
    if (size <= 25) {
        double square = size * size / 4;
        for (int k = 1; term > sum * 1e-17; k++) {
            term *= square / ((double)k * (k + 1));
            sum += term;
        }
        return x / 2 * sum * exp(-size);
    }
    for (int k = 1; fabs(term) > 1e-17; k++) {
        int odd = 2 * k - 1;
        term *= (odd * odd - 4) / (8.0 * k * size);
        sum += term;
    }
    return copysign(sum / sqrt(2 * pi * size), x);
}

static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

#define CHLO(ID, symbol, HLO, FORMULA, DOC)                                                        \
    SF_REAL_UNARY(ID, symbol, "chlo", #symbol, HLO, FORMULA, DOC)

/* On complex numbers, too. */
#define CHLO_FIELD(ID, symbol, HLO, FORMULA, DOC)                                                  \
    SF_FIELD_UNARY(ID, symbol, "chlo", #symbol, HLO, FORMULA, sf_complex_##FORMULA, DOC)

CHLO_FIELD(ACOS, acos, "acos", acos(x), "The inverse of the cosine.")
CHLO_FIELD(ACOSH, acosh, "acosh", acosh(x), "The inverse of the hyperbolic cosine.")
CHLO_FIELD(ASIN, asin, "asin", asin(x), "The inverse of the sine.")
CHLO_FIELD(ASINH, asinh, "asinh", asinh(x), "The inverse of the hyperbolic sine.")
CHLO_FIELD(ATAN, atan, NULL, atan(x), "The inverse of the tangent.")
CHLO_FIELD(ATANH, atanh, "atanh", atanh(x), "The inverse of the hyperbolic tangent.")
CHLO(BESSEL_I1E, bessel_i1e, NULL, bessel_i1e(x),
     "The modified Bessel function of the first kind and order one, times exp(-|x|).")
SF_FIELD_UNARY(CHLO_TAN, chlo_tan, "chlo", "tan", NULL, tan(x), sf_complex_tan(x), "The tangent.")
CHLO_FIELD(COSH, cosh, "cosh", cosh(x), "The hyperbolic cosine.")
CHLO(DIGAMMA, digamma, NULL, digamma(x), "The derivative of the logarithm of the gamma function.")
CHLO(ERF, erf, "erf", erf(x), "The error function.")
CHLO(ERF_INV, erf_inv, NULL, erf_inv(x), "The inverse of the error function.")
CHLO(ERFC, erfc, NULL, erfc(x), "One minus the error function.")
CHLO(LGAMMA, lgamma, NULL, log_gamma(x), "The logarithm of the absolute gamma function.")
SF_REAL_BINARY(POLYGAMMA, polygamma, "chlo", "polygamma", NULL, polygamma(x, y),
               "The derivative of digamma of the order that the first operand says.")
CHLO_FIELD(SINH, sinh, "sinh", sinh(x), "The hyperbolic sine.")
SF_UNARY(SQUARE, square, "chlo", "square", NULL, SF_FIELDS | SF_INTEGERS, NULL, (x * x),
         sf_complex_mul(x, x), (uint64_t)x *(uint64_t)x, "The element times itself.")
SF_REAL_BINARY(ZETA, zeta, "chlo", "zeta", NULL, zeta(x, y), "The Hurwitz zeta function.")

/* The next number of the type itself, so it works on bit patterns. They are sign and magnitude, and
 * the magnitudes of the numbers of a type are ordered as their values. */
static double next_after(sf_dtype dtype, double x, double y)
{
    if (isnan(x) || isnan(y))
        return (double)NAN;
    if (x == y)
        return y;
    uint64_t storage = 0;
    if (x == 0) {
        sf_store_bits(dtype, &storage, 0, 1);
        return copysign(sf_load_f64(dtype, &storage, 0), y);
    }
    sf_store_f64(dtype, &storage, 0, x);
    uint64_t bits = sf_load_bits(dtype, &storage, 0);
    bool away = (y > x) == (x > 0);
    sf_store_bits(dtype, &storage, 0, away ? bits + 1 : bits - 1);
    double next = sf_load_f64(dtype, &storage, 0);
    /* Minus zero is no number of some types. */
    return !away && !(fabs(next) > 0) ? copysign(0, x) : next;
}

static const sf_pointwise row_next_after = {.classes = SF_FLOATS};

static sf_status infer_next_after(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    return sf_pointwise_infer(&row_next_after, op, out, diag);
}

static sf_status eval_next_after(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                 sf_tensor *out)
{
    (void)eval, (void)op;
    sf_dtype dtype = out->type->dtype;
    for (int64_t i = 0; i < out->type->count; i++) {
        double next = next_after(dtype, sf_get_f64(&in[0], i), sf_get_f64(&in[1], i));
        sf_store_f64(dtype, out->data, i, next);
    }
    return SF_OK;
}

const sf_opdef sf_op_next_after = {
    .name = "next_after",
    .dialect = "chlo",
    .doc = "The next number of the type from the first operand towards the second.",
    .id = SF_OP_NEXT_AFTER,
    .form = SF_FORM_OPERANDS,
    .min_operands = 2,
    .max_operands = 2,
    .nresults = 1,
    .infer = infer_next_after,
    .factors = sf_factors_pointwise,
    .flops = sf_flops_pointwise,
    .eval = eval_next_after,
};
