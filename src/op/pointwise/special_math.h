/* Functions that the C library lacks, to about the precision of a double; formulas are named after
 * the NIST Digital Library of Mathematical Functions (DLMF). C, but also part of the text of GPU
 * kernels (run/text/cu/): it includes nothing, and the including file defines TABLE and LARGE. */
#ifndef SF_OP_SPECIAL_MATH_H
#define SF_OP_SPECIAL_MATH_H

#define PI 3.14159265358979323846

/* B(2j) / (2j)! for j = 1, 2, ...: the coefficients of the Euler-Maclaurin formula. */
TABLE double bernoulli[] = {
    8.3333333333333333e-02,  -1.3888888888888889e-03, 3.3068783068783069e-05,
    -8.2671957671957672e-07, 2.0876756987868099e-08,  -5.2841901386874932e-10,
    1.3382536530684679e-11,  -3.3896802963225829e-13, 8.5860620562778446e-15,
    -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19,
};
#define NBERNOULLI ((int)(sizeof bernoulli / sizeof *bernoulli))

/* The Hurwitz zeta function for s > 1, q > 0: the first terms of its series, then the
 * Euler-Maclaurin formula for the rest (DLMF 25.11.28). The rest begins where its own terms fall
 * fast, at a = q + n of at least s + 10; before that the terms of the series may have become too small to
 * matter, which for large s is soon. */
LARGE double hurwitz(double s, double q)
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
LARGE double hurwitz_negative(double s, double q)
{
    double f = q - floor(q), below = hurwitz(s, 1 - f) - hurwitz(s, 1 - q);
    return hurwitz(s, f) + (fmod(s, 2) == 0 ? below : -below);
}

LARGE double zeta(double s, double q)
{
    if (isnan(s) || isnan(q) || s < 1)
        return (double)NAN;
    if (s == 1)
        return (double)INFINITY;
    if (q > 0)
        return isinf(q) ? 0 : hurwitz(s, q);
    int even = fmod(s, 2) == 0;
    if (q == floor(q))
        return even ? (double)INFINITY : (double)NAN;
    return s == floor(s) && isfinite(s) ? hurwitz_negative(s, q) : (double)NAN;
}

/* Digamma near its positive zero, where recurrence would cancel: the Taylor series there, with
 * coefficients (-1)^(n+1) zeta(n + 1, zero) (DLMF 5.15.1). The zero is the sum of two doubles. */
#define DIGAMMA_ZERO 1.4616321449683622
#define DIGAMMA_ZERO_LOW 9.5499954299656977e-17

LARGE double digamma_near_zero(double x)
{
    double h = (x - DIGAMMA_ZERO) - DIGAMMA_ZERO_LOW, power = h, sum = 0;
    for (int n = 1; n < 60; n++) {
        double term = power * hurwitz(n + 1, DIGAMMA_ZERO);
        sum += n % 2 == 1 ? term : -term;
        if (fabs(term) <= fabs(sum) * 1e-17)
            break;
        power *= h;
    }
    return sum;
}

/* Recurrence up to 12, then the asymptotic series (DLMF 5.11.2) log x - 1/2x - sum B(2j) / 2j x^2j. */
LARGE double digamma_positive(double x)
{
    if (fabs(x - DIGAMMA_ZERO) < 0.45)
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

LARGE double digamma(double x)
{
    if (isnan(x) || (x <= 0 && x == floor(x)))
        return (double)NAN;
    if (x > 0)
        return isinf(x) ? x : digamma_positive(x);
    return digamma_positive(1 - x) - PI / tan(PI * (x - rint(x)));
}

/* (-1)^(n+1) n! zeta(n + 1, x), DLMF 5.15.1. */
LARGE double polygamma(double n, double x)
{
    if (isnan(n) || n < 0 || n != floor(n))
        return (double)NAN;
    if (n == 0)
        return digamma(x);
    double value = zeta(n + 1, x);
    if (n > 170) { /* past the range of the factorial: in logarithms */
        value = copysign(exp(log_gamma(n + 1) + log(fabs(value))), value);
    } else {
        value *= tgamma(n + 1);
    }
    return fmod(n, 2) == 1 ? value : -value;
}

/* Solves erf(x) = y by Halley's iteration x - r / (1 + x r) with r = (erf(x) - y) / erf'(x), which
 * triples the correct digits. Near one the residual is taken of the complements, which are exact
 * there. The first guess is Winitzki's, good to two digits everywhere but near zero. */
LARGE double erf_inv_positive(double y)
{
    const double a = 0.147;
    double x = y * sqrt(PI) / 2;
    if (y > 0.1) {
        double w = log((1 - y) * (1 + y)), t = 2 / (PI * a) + w / 2;
        x = sqrt(sqrt(t * t - w / a) - t);
    }
    for (int i = 0; i < 4; i++) {
        double residual = y < 0.5 ? erf(x) - y : (1 - y) - erfc(x);
        double r = residual * exp(x * x) * (sqrt(PI) / 2);
        x -= r / (1 + x * r);
    }
    return x;
}

LARGE double erf_inv(double y)
{
    if (isnan(y) || fabs(y) > 1)
        return (double)NAN;
    if (fabs(y) == 1)
        return copysign((double)INFINITY, y);
    return y == 0 ? y : copysign(erf_inv_positive(fabs(y)), y);
}

/* exp(-|x|) I1(x). Up to 25 by the power series, whose terms are all positive (DLMF 10.25.2); beyond
 * by the asymptotic series (DLMF 10.40.1), whose smallest term is then below exp(-50). */
LARGE double bessel_i1e(double x)
{
    double size = fabs(x), sum = 1, term = 1;
    if (isnan(x))
        return x;
    if (isinf(x))
        return copysign(0.0, x);
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
    return copysign(sum / sqrt(2 * PI * size), x);
}

#endif
