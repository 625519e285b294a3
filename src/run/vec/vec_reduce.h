/* The kernels that combine the elements of a row, for one instruction set.
 *
 * A sum of floats runs in 32 lanes, each over 16 elements of a block of 512; the lanes of a block are
 * then added in double, as are the blocks. So no float takes part in more than 16 additions of floats,
 * whatever the length of the row. The lanes are the same for every set, only more or fewer of them
 * share a vector, and a tail of less than 32 elements is added in double one by one.
 */
#ifndef SF_RUN_VEC_VEC_REDUCE_H
#define SF_RUN_VEC_VEC_REDUCE_H

#include "run/vec/vec_ops.h"

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32 };
#elif defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS > 0
enum { VECTOR_BYTES = __ARM_FEATURE_SVE_BITS / 8 };
#else
enum { VECTOR_BYTES = 16 };
#endif

enum {
    LANES = 32,
    BLOCK = 512,
    LANES64 = 16,
    VECTORS = LANES * 4 / VECTOR_BYTES,
};

typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
typedef double doubles __attribute__((vector_size(VECTOR_BYTES)));

/* Lane by lane for `count` elements, a multiple of the lanes. */
#define SUM_LANES(name, type, vector, lanes)                                                       \
    static inline void name(const type *xs, int64_t count, type out[lanes])                        \
    {                                                                                              \
        enum { EACH = VECTOR_BYTES / (int)sizeof(type) };                                          \
        vector sums[VECTORS] = {0};                                                                \
        for (int64_t i = 0; i < count; i += lanes)                                                 \
            for (int v = 0; v < VECTORS; v++) {                                                    \
                vector x;                                                                          \
                memcpy(&x, xs + i + v * EACH, sizeof x);                                           \
                sums[v] += x;                                                                      \
            }                                                                                      \
        memcpy(out, sums, sizeof sums);                                                            \
    }

SUM_LANES(sum_lanes32, float, floats, LANES)
SUM_LANES(sum_lanes64, double, doubles, LANES64)

/* The sum of a power of two of them, by halves. */
static inline double sum_pairs(double *values, int count)
{
    for (int half = count / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            values[i] += values[i + half];
    return values[0];
}

static double f32_sum_blocks(const float *xs, int64_t count)
{
    double total = 0, wide[LANES];
    float lanes[LANES];
    int64_t whole = count & -(int64_t)LANES;
    for (int64_t first = 0; first < whole; first += BLOCK) {
        int64_t left = whole - first;
        sum_lanes32(xs + first, left < BLOCK ? left : BLOCK, lanes);
        for (int i = 0; i < LANES; i++)
            wide[i] = (double)lanes[i];
        total += sum_pairs(wide, LANES);
    }
    for (int64_t i = whole; i < count; i++)
        total += (double)xs[i];
    return total;
}

static void f32_fold_SUM(void *dst, const void *a, int64_t count)
{
    float *out = dst;
    if (count > 0)
        *out = (float)((double)*out + f32_sum_blocks(a, count));
}

static void f64_fold_SUM(void *dst, const void *a, int64_t count)
{
    const double *xs = a;
    double lanes[LANES64], *out = dst;
    int64_t whole = count & -(int64_t)LANES64;
    sum_lanes64(xs, whole, lanes);
    double total = *out;
    if (whole > 0)
        total += sum_pairs(lanes, LANES64);
    for (int64_t i = whole; i < count; i++)
        total += xs[i];
    *out = total;
}

/* In double, also for floats, so that no part of the product leaves the range before the whole does. */
#define PRODUCT(name, type)                                                                        \
    static void name(void *dst, const void *a, int64_t count)                                      \
    {                                                                                              \
        const type *xs = a;                                                                        \
        type *out = dst;                                                                           \
        double lanes[8] = {1, 1, 1, 1, 1, 1, 1, 1}, total = (double)*out;                          \
        int64_t whole = count & -(int64_t)8;                                                       \
        for (int64_t i = 0; i < whole; i += 8)                                                     \
            for (int k = 0; k < 8; k++)                                                            \
                lanes[k] *= (double)xs[i + k];                                                     \
        for (int k = 0; k < 8; k++)                                                                \
            total *= lanes[k];                                                                     \
        for (int64_t i = whole; i < count; i++)                                                    \
            total *= (double)xs[i];                                                                \
        *out = (type)total;                                                                        \
    }

PRODUCT(f32_fold_PROD, float)
PRODUCT(f64_fold_PROD, double)

/* Floats as integers in the same order: -0 is below +0. The map is its own inverse. NaN is looked for
 * beside it: that way compilers find two plain reductions. */
static inline int32_t f32_key(int32_t bits)
{
    return bits ^ (bits >> 31 & INT32_MAX);
}

static inline int64_t f64_key(int64_t bits)
{
    return bits ^ (bits >> 63 & INT64_MAX);
}

#define EXTREME(name, p, type, integer, unsigned_integer, most, bits, of_bits, operator, infinite) \
    static void name(void *dst, const void *a, int64_t count)                                      \
    {                                                                                              \
        const type *xs = REGISTER(a);                                                              \
        type *out = dst;                                                                           \
        integer first = (integer)bits(*out), best = p##_key(first), size = first & most;           \
        for (int64_t i = 0; i < count; i++) {                                                      \
            integer x = (integer)bits(xs[i]), key = p##_key(x), own = x & most;                    \
            best = key operator best ? key : best;                                                 \
            size = own > size ? own : size;                                                        \
        }                                                                                          \
        *out = size > (infinite) ? (type)NAN : of_bits((unsigned_integer)p##_key(best));           \
    }

#define INFINITY32 0x7f800000
#define INFINITY64 INT64_C(0x7ff0000000000000)
EXTREME(f32_fold_MAX, f32, float, int32_t, uint32_t, INT32_MAX, bits32, float32, >, INFINITY32)
EXTREME(f32_fold_MIN, f32, float, int32_t, uint32_t, INT32_MAX, bits32, float32, <, INFINITY32)
EXTREME(f64_fold_MAX, f64, double, int64_t, uint64_t, INT64_MAX, bits64, float64, >, INFINITY64)
EXTREME(f64_fold_MIN, f64, double, int64_t, uint64_t, INT64_MAX, bits64, float64, <, INFINITY64)

/* The order of integers does not matter. */
#define FOLD(name, type, function)                                                                 \
    static void name(void *dst, const void *a, int64_t count)                                      \
    {                                                                                              \
        const type *xs = REGISTER(a);                                                              \
        type *out = dst, total = *out;                                                             \
        for (int64_t i = 0; i < count; i++)                                                        \
            total = function(total, xs[i]);                                                        \
        *out = total;                                                                              \
    }
#define INTEGER_FOLDS(p, type)                                                                     \
    FOLD(p##_fold_SUM, type, p##_sum)                                                              \
    FOLD(p##_fold_PROD, type, p##_product)                                                         \
    FOLD(p##_fold_MAX, type, p##_larger)                                                           \
    FOLD(p##_fold_MIN, type, p##_smaller)                                                          \
    FOLD(p##_fold_UMAX, type, p##_ularger)                                                         \
    FOLD(p##_fold_UMIN, type, p##_usmaller)                                                        \
    FOLD(p##_fold_AND, type, p##_and)                                                              \
    FOLD(p##_fold_OR, type, p##_or)                                                                \
    FOLD(p##_fold_XOR, type, p##_xor)

INTEGER_FOLDS(i32, int32_t)
INTEGER_FOLDS(i64, int64_t)

#endif
