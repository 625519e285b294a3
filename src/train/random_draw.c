#include "train/random_draw.h"

#include <math.h>

#include "base/rng.h"

static void draw_block(const uint32_t key[2], uint64_t counter, uint32_t out[2])
{
    const uint32_t words[2] = {(uint32_t)counter, (uint32_t)(counter >> 32)};
    sf_rng_threefry(key, words, out);
}

sf_draw sf_draw_of(uint64_t seed, sf_purpose purpose, uint64_t which)
{
    uint32_t root[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    sf_draw of_purpose, draw;
    draw_block(root, (uint64_t)purpose, of_purpose.key);
    draw_block(of_purpose.key, which, draw.key);
    return draw;
}

uint64_t sf_draw_bits(const sf_draw *draw, uint64_t index)
{
    uint32_t words[2];
    draw_block(draw->key, index, words);
    return (uint64_t)words[1] << 32 | words[0];
}

/* Odd multiples of 2^-54: neither 0 nor 1, and symmetric around 1/2. */
double sf_draw_uniform(const sf_draw *draw, uint64_t index)
{
    return ((double)(sf_draw_bits(draw, index) >> 11) + 0.5) * 0x1p-53;
}

static inline double polynomial_ratio(const double *above, const double *below, double x)
{
    double a = above[7], b = below[7];
    for (int i = 6; i >= 0; i--) {
        a = a * x + above[i];
        b = b * x + below[i];
    }
    return a / b;
}

/* M. J. Wichura, Algorithm AS 241: the percentage points of the normal distribution, Applied
 * Statistics 37 (1988); PPND16, accurate to about 16 digits. Around the middle, where q = p - 1/2 is at most 0.425, and outside. */
static const double near_middle = 0.425;

static inline double middle_quantile(double q)
{
    static const double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                               1.9715909503065514427e+3, 1.3731693765509461125e+4,
                               4.5921953931549871457e+4, 6.7265770927008700853e+4,
                               3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double b[] = {1.0,
                               4.2313330701600911252e+1,
                               6.8718700749205790830e+2,
                               5.3941960214247511077e+3,
                               2.1213794301586595867e+4,
                               3.9307895800092710610e+4,
                               2.8729085735721942674e+4,
                               5.2264952788528545610e+3};
    return q * polynomial_ratio(a, b, 0.180625 - q * q);
}

static double outer_quantile(double p)
{
    static const double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                               5.76949722146069140550e0,  3.64784832476320460504e0,
                               1.27045825245236838258e0,  2.41780725177450611770e-1,
                               2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[] = {1.0,
                               2.05319162663775882187e0,
                               1.67638483018380384940e0,
                               6.89767334985100004550e-1,
                               1.48103976427480074590e-1,
                               1.51986665636164571966e-2,
                               5.47593808499534494600e-4,
                               1.05075007164441684324e-9};
    static const double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                               1.78482653991729133580e0,  2.96560571828504891230e-1,
                               2.65321895265761230930e-2, 1.24266094738807843860e-3,
                               2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double f[] = {1.0,
                               5.99832206555887937690e-1,
                               1.36929880922735805310e-1,
                               1.48753612908506148525e-2,
                               7.86869131145613259100e-4,
                               1.84631831751005468180e-5,
                               1.42151175831644588870e-7,
                               2.04426310338993978564e-15};
    double r = sqrt(-log(p < 0.5 ? p : 1 - p));
    double x = r <= 5 ? polynomial_ratio(c, d, r - 1.6) : polynomial_ratio(e, f, r - 5);
    return p < 0.5 ? -x : x;
}

double sf_normal_quantile(double p)
{
    double q = p - 0.5;
    return fabs(q) <= near_middle ? middle_quantile(q) : outer_quantile(p);
}

/* Numbers that are drawn together, in loops that compilers make vectors of. */
enum { TOGETHER = 64 };

/* As sf_draw_uniform. */
static void draw_uniforms(const sf_draw *draw, uint64_t first, double *out)
{
    uint32_t low[TOGETHER], high[TOGETHER];
    for (uint32_t i = 0; i < TOGETHER; i++) {
        uint64_t counter = first + i;
        low[i] = (uint32_t)counter;
        high[i] = (uint32_t)(counter >> 32);
    }
    sf_rng_threefry_many(draw->key, TOGETHER, low, high);
    for (int i = 0; i < TOGETHER; i++) {
        double above = (double)(int32_t)(high[i] ^ 0x80000000U) + 0x1p31;
        double below = (double)(int32_t)(low[i] >> 11);
        out[i] = (above * 0x1p21 + below + 0.5) * 0x1p-53;
    }
}

static void draw_normals_together(const sf_draw *draw, uint64_t first, double outside, double *out)
{
    double p[TOGETHER];
    draw_uniforms(draw, first, p);
    for (int i = 0; i < TOGETHER; i++) {
        p[i] = outside + p[i] * (1 - 2 * outside);
        out[i] = middle_quantile(p[i] - 0.5);
    }
    for (int i = 0; i < TOGETHER; i++)
        if (fabs(p[i] - 0.5) > near_middle)
            out[i] = outer_quantile(p[i]);
}

void sf_draw_normals(const sf_draw *draw, uint64_t first, int64_t count, double limit, double *out)
{
    double outside = limit > 0 ? erfc(limit / sqrt(2)) / 2 : 0;
    int64_t i = 0;
    for (; i + TOGETHER <= count; i += TOGETHER)
        draw_normals_together(draw, first + (uint64_t)i, outside, out + i);
    for (; i < count; i++) {
        double p = sf_draw_uniform(draw, first + (uint64_t)i);
        out[i] = sf_normal_quantile(outside + p * (1 - 2 * outside));
    }
}

/* A Feistel network over the next power of four is a permutation there; walking along it until the
 * value is inside of the range makes it one of the range (Black and Rogaway, Ciphers with arbitrary
 * finite domains, 2002). */
uint64_t sf_draw_permuted(const sf_draw *draw, uint64_t count, uint64_t index)
{
    enum { ROUNDS = 6 };
    int half = 1;
    while (half < 32 && (UINT64_C(1) << 2 * half) < count)
        half++;
    uint32_t mask = half == 32 ? UINT32_MAX : (UINT32_C(1) << half) - 1;
    do {
        uint32_t left = (uint32_t)(index >> half) & mask, right = (uint32_t)index & mask;
        for (uint32_t round = 0; round < ROUNDS; round++) {
            uint64_t bits = sf_draw_bits(draw, (uint64_t)round << 32 | right);
            uint32_t mixed = left ^ ((uint32_t)bits & mask);
            left = right;
            right = mixed;
        }
        index = (uint64_t)left << half | right;
    } while (index >= count);
    return index;
}

void sf_jax_key(uint64_t seed, uint32_t key[2])
{
    key[0] = (uint32_t)(seed >> 32);
    key[1] = (uint32_t)seed;
}

void sf_jax_fold_in(const uint32_t key[2], uint32_t data, uint32_t out[2])
{
    const uint32_t counter[2] = {0, data};
    sf_rng_threefry(key, counter, out);
}
