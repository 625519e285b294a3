/* The kernels that go from registers to a register, for one instruction set. */
#ifndef SF_RUN_VEC_VEC_OPS_H
#define SF_RUN_VEC_VEC_OPS_H

#include "run/vec/math.h"
#include "run/vec/set.h"

/* Before a loop whose steps do not depend on each other: dst may be one of the operands, which
 * `restrict` would forbid. */
#if defined(__clang__)
#define SEPARATE_STEPS _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define SEPARATE_STEPS _Pragma("GCC ivdep")
#endif

/* Registers have room for a multiple of 16 elements: no loop needs a tail. */
static inline int64_t whole_count(int64_t count)
{
    return (count + 15) & -16;
}

#define REGISTER(pointer) (pointer)

#define KERNEL(name, first_type, type, result_type, expression)                                    \
    static void name(void *dst, const void *a, const void *b, const void *c, int64_t count)        \
    {                                                                                              \
        (void)a, (void)b, (void)c;                                                                 \
        const first_type *xs = REGISTER(a);                                                        \
        const type *ys = REGISTER(b), *zs = REGISTER(c);                                           \
        result_type *out = REGISTER(dst);                                                          \
        (void)ys, (void)zs;                                                                        \
        int64_t whole = whole_count(count);                                                        \
        SEPARATE_STEPS                                                                             \
        for (int64_t i = 0; i < whole; i++)                                                        \
            out[i] = expression;                                                                   \
    }
#define ONE(name, type, function) KERNEL(name, type, type, type, function(xs[i]))
#define TWO(name, type, function) KERNEL(name, type, type, type, function(xs[i], ys[i]))
#define THREE(name, type, function) KERNEL(name, type, type, type, function(xs[i], ys[i], zs[i]))
#define COMPARE(name, type, operator) KERNEL(name, type, type, int32_t, xs[i] operator ys[i])
#define COMPARE_UNSIGNED(name, type, unsigned_type, operator)                                      \
    KERNEL(name, type, type, int32_t, (unsigned_type)xs[i] operator(unsigned_type) ys[i])

/* Functions of both float types. `nothing` is the number from which on all numbers are whole. */
#define FLOAT_FUNCTIONS(p, type, uint, bits, of_bits, sign_of, SIGN_BIT, nothing)                  \
    static inline type p##_absolute(type x)                                                        \
    {                                                                                              \
        return of_bits(bits(x) & ~SIGN_BIT);                                                       \
    }                                                                                              \
    static inline type p##_negative(type x)                                                        \
    {                                                                                              \
        return of_bits(bits(x) ^ SIGN_BIT);                                                        \
    }                                                                                              \
    static inline type p##_signum(type x)                                                          \
    {                                                                                              \
        type y = x > 0 ? (type)1 : x;                                                              \
        return x < 0 ? (type)-1 : y;                                                               \
    }                                                                                              \
    static inline type p##_even(type x)                                                            \
    {                                                                                              \
        type size = p##_absolute(x), y = (size + nothing) - nothing;                               \
        return size < nothing ? sign_of(y, x) : x;                                                 \
    }                                                                                              \
    static inline type p##_below(type x)                                                           \
    {                                                                                              \
        type y = p##_even(x);                                                                      \
        return sign_of(y > x ? y - 1 : y, x);                                                      \
    }                                                                                              \
    static inline type p##_above(type x)                                                           \
    {                                                                                              \
        type y = p##_even(x);                                                                      \
        return sign_of(y < x ? y + 1 : y, x);                                                      \
    }                                                                                              \
    static inline type p##_from_zero(type x)                                                       \
    {                                                                                              \
        type size = p##_absolute(x), y = p##_even(size);                                           \
        return sign_of(size - y == (type)0.5 ? y + 1 : y, x);                                      \
    }                                                                                              \
    static inline type p##_larger(type x, type y)                                                  \
    {                                                                                              \
        type z = x > y ? x : y;                                                                    \
        z = x == y ? of_bits(bits(x) & bits(y)) : z; /* +0 above -0 */                             \
        return x != x ? x : z;                                                                     \
    }                                                                                              \
    static inline type p##_smaller(type x, type y)                                                 \
    {                                                                                              \
        type z = x < y ? x : y;                                                                    \
        z = x == y ? of_bits(bits(x) | bits(y)) : z;                                               \
        return x != x ? x : z;                                                                     \
    }                                                                                              \
    static inline type p##_sum(type x, type y)                                                     \
    {                                                                                              \
        return x + y;                                                                              \
    }                                                                                              \
    static inline type p##_difference(type x, type y)                                              \
    {                                                                                              \
        return x - y;                                                                              \
    }                                                                                              \
    static inline type p##_product(type x, type y)                                                 \
    {                                                                                              \
        return x * y;                                                                              \
    }                                                                                              \
    static inline type p##_quotient(type x, type y)                                                \
    {                                                                                              \
        return x / y;                                                                              \
    }                                                                                              \
    static inline type p##_product_sum(type x, type y, type z)                                     \
    {                                                                                              \
        return x * y + z;                                                                          \
    }

FLOAT_FUNCTIONS(f32, float, uint32_t, bits32, float32, with_sign, SIGN32, 0x1p23f)
FLOAT_FUNCTIONS(f64, double, uint64_t, bits64, float64, with_sign64, SIGN64, 0x1p52)

/* Functions of both integer types. A quotient by 0 is all ones and leaves the dividend as
 * remainder; a shift by the width or more leaves only the sign. */
#define INTEGER_FUNCTIONS(p, type, uint, width)                                                    \
    static inline type p##_absolute(type x)                                                        \
    {                                                                                              \
        return x < 0 ? (type)(0 - (uint)x) : x;                                                    \
    }                                                                                              \
    static inline type p##_negative(type x)                                                        \
    {                                                                                              \
        return (type)(0 - (uint)x);                                                                \
    }                                                                                              \
    static inline type p##_signum(type x)                                                          \
    {                                                                                              \
        return (type)((x > 0) - (x < 0));                                                          \
    }                                                                                              \
    static inline type p##_complement(type x)                                                      \
    {                                                                                              \
        return ~x;                                                                                 \
    }                                                                                              \
    static inline type p##_larger(type x, type y)                                                  \
    {                                                                                              \
        return x < y ? y : x;                                                                      \
    }                                                                                              \
    static inline type p##_smaller(type x, type y)                                                 \
    {                                                                                              \
        return x < y ? x : y;                                                                      \
    }                                                                                              \
    static inline type p##_ularger(type x, type y)                                                 \
    {                                                                                              \
        return (uint)x < (uint)y ? y : x;                                                          \
    }                                                                                              \
    static inline type p##_usmaller(type x, type y)                                                \
    {                                                                                              \
        return (uint)x < (uint)y ? x : y;                                                          \
    }                                                                                              \
    static inline type p##_sum(type x, type y)                                                     \
    {                                                                                              \
        return (type)((uint)x + (uint)y);                                                          \
    }                                                                                              \
    static inline type p##_difference(type x, type y)                                              \
    {                                                                                              \
        return (type)((uint)x - (uint)y);                                                          \
    }                                                                                              \
    static inline type p##_product(type x, type y)                                                 \
    {                                                                                              \
        return (type)((uint)x * (uint)y);                                                          \
    }                                                                                              \
    static inline type p##_product_sum(type x, type y, type z)                                     \
    {                                                                                              \
        return (type)((uint)x * (uint)y + (uint)z);                                                \
    }                                                                                              \
    static inline type p##_uquotient(type x, type y)                                               \
    {                                                                                              \
        return y == 0 ? -1 : (type)((uint)x / (uint)y);                                            \
    }                                                                                              \
    static inline type p##_uremainder(type x, type y)                                              \
    {                                                                                              \
        return y == 0 ? x : (type)((uint)x % (uint)y);                                             \
    }                                                                                              \
    static inline type p##_and(type x, type y)                                                     \
    {                                                                                              \
        return x & y;                                                                              \
    }                                                                                              \
    static inline type p##_or(type x, type y)                                                      \
    {                                                                                              \
        return x | y;                                                                              \
    }                                                                                              \
    static inline type p##_xor(type x, type y)                                                     \
    {                                                                                              \
        return x ^ y;                                                                              \
    }                                                                                              \
    static inline type p##_left(type x, type y)                                                    \
    {                                                                                              \
        type z = (type)((uint)x << ((uint)y & (width - 1)));                                       \
        return (uint)y < width ? z : 0;                                                            \
    }                                                                                              \
    static inline type p##_uright(type x, type y)                                                  \
    {                                                                                              \
        type z = (type)((uint)x >> ((uint)y & (width - 1)));                                       \
        return (uint)y < width ? z : 0;                                                            \
    }                                                                                              \
    static inline type p##_right(type x, type y)                                                   \
    {                                                                                              \
        return x >> ((uint)y < width ? y : width - 1);                                             \
    }

INTEGER_FUNCTIONS(i32, int32_t, uint32_t, 32)
INTEGER_FUNCTIONS(i64, int64_t, uint64_t, 64)

/* There is no vector instruction that divides integers, but one for doubles: the quotient of two
 * 32-bit integers is at least 1/|y| away from the next integer unless it is one, much more than the
 * error of the quotient of doubles. */
static inline int32_t i32_quotient(int32_t x, int32_t y)
{
    int plain = y != 0 && y != -1;
    int32_t special = y == 0 ? -1 : i32_negative(x);
    int32_t z = (int32_t)((double)x / (plain ? (double)y : 1.0));
    return plain ? z : special;
}

static inline int32_t i32_remainder(int32_t x, int32_t y)
{
    int32_t z = i32_difference(x, i32_product(i32_quotient(x, y), y));
    return y == 0 ? x : z;
}

#define ALL_KERNELS(p, type)                                                                       \
    KERNEL(p##_COPY, type, type, type, xs[i])                                                      \
    ONE(p##_NEG, type, p##_negative)                                                               \
    ONE(p##_ABS, type, p##_absolute)                                                               \
    ONE(p##_SIGN, type, p##_signum)                                                                \
    TWO(p##_ADD, type, p##_sum)                                                                    \
    TWO(p##_SUB, type, p##_difference)                                                             \
    TWO(p##_MUL, type, p##_product)                                                                \
    TWO(p##_MAX, type, p##_larger)                                                                 \
    TWO(p##_MIN, type, p##_smaller)                                                                \
    COMPARE(p##_EQ, type, ==)                                                                      \
    COMPARE(p##_NE, type, !=)                                                                      \
    COMPARE(p##_LT, type, <)                                                                       \
    COMPARE(p##_LE, type, <=)                                                                      \
    COMPARE(p##_GT, type, >)                                                                       \
    COMPARE(p##_GE, type, >=)                                                                      \
    KERNEL(p##_SELECT, int32_t, type, type, xs[i] != 0 ? ys[i] : zs[i])                            \
    THREE(p##_FMA, type, p##_product_sum)

ALL_KERNELS(f32, float)
ALL_KERNELS(f64, double)
ALL_KERNELS(i32, int32_t)
ALL_KERNELS(i64, int64_t)

#define FLOAT_KERNELS(p, type, root, infinity)                                                     \
    ONE(p##_SQRT, type, root)                                                                      \
    KERNEL(p##_RSQRT, type, type, type, 1 / root(xs[i]))                                           \
    ONE(p##_FLOOR, type, p##_below)                                                                \
    ONE(p##_CEIL, type, p##_above)                                                                 \
    ONE(p##_ROUND_AFZ, type, p##_from_zero)                                                        \
    ONE(p##_ROUND_EVEN, type, p##_even)                                                            \
    KERNEL(p##_IS_FINITE, type, type, int32_t, p##_absolute(xs[i]) < infinity)

FLOAT_KERNELS(f32, float, sqrtf, INFINITY)
FLOAT_KERNELS(f64, double, sqrt, (double)INFINITY)

#define INTEGER_KERNELS(p, type, uint)                                                             \
    ONE(p##_NOT, type, p##_complement)                                                             \
    TWO(p##_UDIV, type, p##_uquotient)                                                             \
    TWO(p##_UREM, type, p##_uremainder)                                                            \
    TWO(p##_UMAX, type, p##_ularger)                                                               \
    TWO(p##_UMIN, type, p##_usmaller)                                                              \
    TWO(p##_AND, type, p##_and)                                                                    \
    TWO(p##_OR, type, p##_or)                                                                      \
    TWO(p##_XOR, type, p##_xor)                                                                    \
    TWO(p##_SHL, type, p##_left)                                                                   \
    TWO(p##_SHR, type, p##_right)                                                                  \
    TWO(p##_USHR, type, p##_uright)                                                                \
    COMPARE_UNSIGNED(p##_ULT, type, uint, <)                                                       \
    COMPARE_UNSIGNED(p##_ULE, type, uint, <=)                                                      \
    COMPARE_UNSIGNED(p##_UGT, type, uint, >)                                                       \
    COMPARE_UNSIGNED(p##_UGE, type, uint, >=)

INTEGER_KERNELS(i32, int32_t, uint32_t)
INTEGER_KERNELS(i64, int64_t, uint64_t)
TWO(f32_DIV, float, f32_quotient)
TWO(f64_DIV, double, f64_quotient)
TWO(i32_DIV, int32_t, i32_quotient)
TWO(i32_REM, int32_t, i32_remainder)
KERNEL(i32_NOT_BOOL, int32_t, int32_t, int32_t, xs[i] ^ 1)

ONE(f32_EXP, float, exp32)
ONE(f32_EXPM1, float, expm1_32)
ONE(f32_LOG, float, log32)
ONE(f32_LOG1P, float, log1p_32)
ONE(f32_LOGISTIC, float, logistic32)
ONE(f32_TANH, float, tanh32)
ONE(f32_ERF, float, erf32)
ONE(f32_CBRT, float, cbrt32)
TWO(f32_POW, float, pow32)

/* Elements too far out are rare; a run that has one is done element by element, each of the others as
 * the vector loop would have done it. */
#define ANGLE(name, near, far)                                                                     \
    ONE(name##_near, float, near)                                                                  \
    static void name(void *dst, const void *a, const void *b, const void *c, int64_t count)        \
    {                                                                                              \
        const float *xs = REGISTER(a);                                                             \
        float *out = REGISTER(dst);                                                                \
        uint32_t most = 0;                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                      \
            uint32_t size = bits32(xs[i]) & ~SIGN32;                                               \
            most = most > size ? most : size;                                                      \
        }                                                                                          \
        if (most < bits32(FAR_ANGLE)) {                                                            \
            name##_near(dst, a, b, c, count);                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = magnitude(xs[i]) < FAR_ANGLE ? near(xs[i]) : far(xs[i]);                      \
    }

ANGLE(f32_SIN, near_sin, sf_vec_far_sin)
ANGLE(f32_COS, near_cos, sf_vec_far_cos)
ANGLE(f32_TAN, near_tan, sf_vec_far_tan)

#endif
