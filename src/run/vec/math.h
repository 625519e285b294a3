/* Functions of one float without a branch or a call, for compilers to make vectors of.
 *
 * Each reduces its argument, evaluates a polynomial and undoes the reduction; what is special is
 * picked at the end. The polynomials are minimax fits of the relative error on the reduced range
 * (an exchange algorithm in 40 digits, the coefficients then rounded to the type); beside each is
 * its own error, in units of 2^-24. With all roundings the largest error seen, in ulp, on every
 * fifth float of the middle range (exp to 80, log from 0.4 to 3, log1p to 10, erf to 4 and so on)
 * and, in the test, on four million from the whole range, is:
 *
 *     exp 0.98   expm1 1.53   log 0.91   log1p 0.91   tanh 1.32   logistic 1.69   erf 1.33
 *
 * sin, cos, tan, cbrt and pow compute in double, and round once: 0.501.
 *
 * Nothing here relies on fast-math. Converting to an integer is done by adding 1.5 * 2^23 (2^52 for
 * double), which leaves the integer in the low bits, also where there is no instruction for it. */
#ifndef SF_RUN_VEC_MATH_H
#define SF_RUN_VEC_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bits32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float32(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t bits64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double float64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define SIGN32 UINT32_C(0x80000000)
#define SIGN64 (UINT64_C(1) << 63)

static inline float magnitude(float x)
{
    return float32(bits32(x) & ~SIGN32);
}

/* The size of one, the sign of the other. */
static inline float with_sign(float size, float sign)
{
    return float32((bits32(size) & ~SIGN32) | (bits32(sign) & SIGN32));
}

static inline double with_sign64(double size, double sign)
{
    return float64((bits64(size) & ~SIGN64) | (bits64(sign) & SIGN64));
}

#define MAGIC32 12582912.0f        /* 1.5 * 2^23 */
#define MAGIC64 6755399441055744.0 /* 1.5 * 2^52 */

/* 2^n for n in [-126, 127]. */
static inline float power_of_two(int32_t n)
{
    return float32((uint32_t)(n + 127) << 23);
}

/* exp(r) = 1 + r + r^2 q(r) for |r| <= ln(2) / 2. 0.05 */
static inline float exp_tail(float r)
{
    float q = 0x1.6a232ap-10f;
    q = q * r + 0x1.123abap-7f;
    q = q * r + 0x1.5558f6p-5f;
    q = q * r + 0x1.555490p-3f;
    return q * r + 0x1.fffffcp-2f;
}

/* x = n ln(2) + r, for |x| < 2000. ln(2) is cut in two: the upper part has 9 bits, so that n times it
 * is exact. */
static inline float exp_reduce(float x, int32_t *n)
{
    float shifted = x * 0x1.715476p+0f + MAGIC32, whole = shifted - MAGIC32;
    *n = (int32_t)(bits32(shifted) - bits32(MAGIC32));
    return (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
}

/* y * 2^n for n in [-252, 254], rounded once. */
static inline float scaled(float y, int32_t n)
{
    int32_t half = n >> 1;
    return y * power_of_two(half) * power_of_two(n - half);
}

/* The bounds lie where the result is already infinite, or zero. */
static inline float exp32(float x)
{
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    int32_t n;
    float r = exp_reduce(x, &n);
    return scaled(1.0f + (r + r * r * exp_tail(r)), n);
}

/* 2^n ((exp(r) - 1) + (1 - 2^-n)); the last part is 1 for large n. */
static inline float expm1_32(float x)
{
    float z = x > 89.0f ? 89.0f : x;
    z = z < -20.0f ? -20.0f : z;
    int32_t n;
    float r = exp_reduce(z, &n);
    float rest = 1.0f - power_of_two(n > 60 ? -60 : -n);
    float y = scaled((r + r * r * exp_tail(r)) + rest, n);
    return magnitude(x) < 0x1p-24f ? x : y;
}

/* log(1 + f) = f - f^2/2 + f^3 P(f) for 1 + f in [sqrt(1/2), sqrt(2)], and n ln(2) and a small `more`
 * added where they lose least. 0.1 */
static inline float log_sum(float f, float n, float more)
{
    float p = -0x1.38c1bap-4f;
    p = p * f + 0x1.05649ap-3f;
    p = p * f - 0x1.0d8758p-3f;
    p = p * f + 0x1.22d908p-3f;
    p = p * f - 0x1.5471f6p-3f;
    p = p * f + 0x1.99a012p-3f;
    p = p * f - 0x1.000228p-2f;
    p = p * f + 0x1.555554p-2f;
    float square = f * f;
    float low = n * -2.12194440e-4f + more + (square * f * p - 0.5f * square);
    return n * 0.693359375f + (f + low);
}

/* x = 2^n m, m in [sqrt(1/2), sqrt(2)): the bits of sqrt(1/2) are subtracted, so that the exponent
 * field changes there. For normal, positive x. */
static inline float log_reduce(float x, int32_t *n)
{
    uint32_t bits = bits32(x) - 0x3f3504f3;
    *n = (int32_t)bits >> 23;
    return float32((bits & 0x7fffff) + 0x3f3504f3);
}

/* log of a number that is not an ordinary one: of 0, of a negative one, of infinity or NaN. */
static inline float log_special(float x, float y)
{
    y = x == 0 ? -INFINITY : y;
    y = x < INFINITY ? y : x;
    return x < 0 ? NAN : y;
}

static inline float log32(float x)
{
    int tiny = x < 0x1p-126f;
    int32_t n;
    float m = log_reduce(tiny ? x * 0x1p23f : x, &n);
    return log_special(x, log_sum(m - 1.0f, (float)(n - (tiny ? 23 : 0)), 0.0f));
}

/* The log of u = 1 + x rounded, plus a correction for the rounding error, which is small beside
 * u. */
static inline float log1p_32(float x)
{
    float u = 1.0f + x, part = u - 1.0f;
    float lost = (1.0f - (u - part)) + (x - part);
    int32_t n;
    float m = log_reduce(u, &n);
    int near = n == 0;
    float more = near || x > 0x1p25f ? 0.0f : lost / u;
    float y = log_special(u, log_sum(near ? x : m - 1.0f, (float)n, more));
    return magnitude(x) < 0x1p-24f ? x : y;
}

/* 1 / (1 + exp(s)) for s = |x|, with both sides divided by 2^n. The 2^-n that comes into the
 * denominator is cut in two: what 1 can take exactly, and a rest for the small part, so that one sum is
 * rounded. Small results keep their digits; large ones are 1 minus a small one. */
static inline float logistic32(float x)
{
    float size = magnitude(x);
    int32_t n;
    float r = exp_reduce(size > 104.0f ? 104.0f : size, &n);
    float part = power_of_two(n > 60 ? -60 : -n), large = 1.0f + part, rest = part - (large - 1.0f);
    float tail = scaled(1.0f / (large + ((r + r * r * exp_tail(r)) + rest)), -n);
    return x >= 0 ? 1.0f - tail : tail;
}

/* x + x^3 P(x^2) near 0 (0.07), else 1 - 2 / (1 + exp(2x)), which never exceeds 1. */
static inline float tanh32(float x)
{
    float size = magnitude(x), z = x * x;
    float p = -0x1.756272p-8f;
    p = p * z + 0x1.520b38p-6f;
    p = p * z - 0x1.b83856p-5f;
    p = p * z + 0x1.11070ap-3f;
    p = p * z - 0x1.555532p-2f;
    float near = size + size * z * p;
    float t = size > 10.0f ? 10.0f : size;
    int32_t n;
    float r = exp_reduce(t + t, &n);
    float e = (1.0f + (r + r * r * exp_tail(r))) * power_of_two(n);
    float far = 1.0f - 2.0f / (e + 1.0f);
    return with_sign(size < 0.625f ? near : far, x);
}

/* x + x R(x^2) near 0 (0.01), else 1 - exp(-S(x)) with S = -log(erfc(x)) (0.001). */
static inline float erf32(float x)
{
    float size = magnitude(x), z = x * x;
    float p = 0x1.5f4f04p-14f;
    p = p * z - 0x1.aafbb8p-11f;
    p = p * z + 0x1.54dcd6p-8f;
    p = p * z - 0x1.b810aep-6f;
    p = p * z + 0x1.ce2e22p-4f;
    p = p * z - 0x1.812744p-2f;
    p = p * z + 0x1.06eba8p-3f;
    float near = size + size * p;
    float t = size > 4.0f ? 4.0f : size;
    float s = 0x1.61b446p-16f;
    s = s * t - 0x1.c769fap-12f;
    s = s * t + 0x1.114ef8p-8f;
    s = s * t - 0x1.9b86b6p-6f;
    s = s * t + 0x1.bb80e4p-4f;
    s = s * t + 0x1.444664p-1f;
    s = s * t + 0x1.2127cep+0f;
    s = s * t - 0x1.6dc738p-13f;
    int32_t n;
    float r = exp_reduce(-s, &n);
    float far = 1.0f - (1.0f + (r + r * r * exp_tail(r))) * power_of_two(n);
    return with_sign(size < 0.92f ? near : far, x);
}

/* Above this the number of quarter periods times the upper part of pi/2, 33 bits, is no longer
 * exact. */
#define FAR_ANGLE 0x1p20f

/* x = quarter * pi/2 + r; the sine and cosine of r. 0.0001 */
static inline void turn(float x, uint64_t *quarter, double *sine, double *cosine)
{
    double shifted = (double)x * 0.63661977236758134308 + MAGIC64, whole = shifted - MAGIC64;
    double r = ((double)x - whole * 0x1.921fb544p+0) - whole * 0x1.0b4611a626331p-34, z = r * r;
    *quarter = bits64(shifted);
    double s = 0x1.6ccea8a10fc9ap-19;
    s = s * z - 0x1.a00f716686dfdp-13;
    s = s * z + 0x1.1111085952e1cp-7;
    s = s * z - 0x1.5555554c5a5a3p-3;
    *sine = r + r * z * s;
    double c = -0x1.241c2111e762ap-22;
    c = c * z + 0x1.a010d2bfaca08p-16;
    c = c * z - 0x1.6c16b817ab404p-10;
    c = c * z + 0x1.5555554ec8416p-5;
    *cosine = (1.0 - 0.5 * z) + z * z * c;
}

static inline float near_sin(float x)
{
    uint64_t quarter;
    double s, c;
    turn(x, &quarter, &s, &c);
    double y = quarter & 1 ? c : s;
    y = float64(bits64(y) ^ (quarter & 2) << 62);
    return x == 0 ? x : (float)y;
}

static inline float near_cos(float x)
{
    uint64_t quarter;
    double s, c;
    turn(x, &quarter, &s, &c);
    double y = quarter & 1 ? s : c;
    return (float)float64(bits64(y) ^ ((quarter + 1) & 2) << 62);
}

static inline float near_tan(float x)
{
    uint64_t quarter;
    double s, c;
    turn(x, &quarter, &s, &c);
    double y = (quarter & 1 ? c : s) / (quarter & 1 ? -s : c);
    return x == 0 ? x : (float)y;
}

/* log2 of a positive float, in double, where no float is below the normal range: with m as in
 * log_reduce, log2(m) = s R(s^2), s = (m - 1) / (m + 1). -inf at 0, infinity at infinity. 0.0001 */
static inline double log2_64(double x)
{
    uint64_t bits = bits64(x) - UINT64_C(0x3fe6a09e667f3bcd) + (UINT64_C(1024) << 52);
    double n = float64(bits >> 52 | UINT64_C(0x4330000000000000)) - (0x1p52 + 1024);
    double m = float64((bits & (UINT64_C(0xfffffffffffff))) + UINT64_C(0x3fe6a09e667f3bcd));
    double s = (m - 1) / (m + 1), z = s * s;
    double p = 0x1.5cee37a1f711ap-2;
    p = p * z + 0x1.a58d3b0ff49a2p-2;
    p = p * z + 0x1.277780859e53bp-1;
    p = p * z + 0x1.ec709d1209c27p-1;
    p = p * z + 0x1.71547652bee89p+1;
    double y = n + s * p;
    y = x == 0 ? -(double)INFINITY : y;
    return x < (double)INFINITY ? y : x;
}

/* 2^x, to be rounded to float: results beyond its range become infinity or 0 there. 0.0007 */
static inline double exp2_64(double x)
{
    double t = x > 200 ? 200 : x;
    t = t < -200 ? -200 : t;
    double shifted = t + MAGIC64, g = t - (shifted - MAGIC64);
    double p = 0x1.fe15d37189346p-17;
    p = p * g + 0x1.446b876d8f16cp-13;
    p = p * g + 0x1.5d8a757b26e4fp-10;
    p = p * g + 0x1.3b29da837a1d0p-7;
    p = p * g + 0x1.c6b08aa6c7b9bp-5;
    p = p * g + 0x1.ebfbe0a6ccdddp-3;
    p = p * g + 0x1.62e42ff11c16ap-1;
    p = p * g + 0x1.ffffffffaa680p-1;
    return p * float64((bits64(shifted) - bits64(MAGIC64) + 1023) << 52);
}

static inline float cbrt32(float x)
{
    return with_sign((float)exp2_64(log2_64((double)magnitude(x)) * (1.0 / 3)), x);
}

/* As C's pow: 1 for y = 0, for x = 1 and for x = -1 with y infinite; a negative x has a power for
 * whole y only, negative for odd y. Beyond 2^53 every double is even. */
static inline float pow32(float x32, float y32)
{
    double x = (double)x32, y = (double)y32;
    double size = float64(bits64(x) & ~SIGN64), size_y = float64(bits64(y) & ~SIGN64);
    double value = exp2_64(y * log2_64(size));
    double whole = (size_y + 0x1p52) - 0x1p52, half = 0.5 * size_y;
    int integer = size_y >= 0x1p52 || whole == size_y;
    int odd = integer && size_y < 0x1p52 && (half + 0x1p52) - 0x1p52 != half;
    uint64_t sign = odd ? bits64(x) & SIGN64 : 0;
    value = float64(bits64(value) | sign);
    int complex = x < 0 && size < (double)INFINITY && !integer;
    value = complex ? (double)NAN : value;
    int one = y == 0 || x == 1 || (x == -1 && size_y == (double)INFINITY);
    return one ? 1.0f : (float)value;
}

#endif
