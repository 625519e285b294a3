/* The kernels between memory and registers, and between classes of registers, for one instruction
 * set. Elements in memory need not be aligned. */
#ifndef SF_RUN_VEC_VEC_MEMORY_H
#define SF_RUN_VEC_VEC_MEMORY_H

#include "run/vec/vec_ops.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

/* Element types as they lie in memory. */
#define IN_MEMORY __attribute__((aligned(1), may_alias))
typedef uint8_t u8_memory IN_MEMORY;
typedef int8_t s8_memory IN_MEMORY;
typedef uint16_t u16_memory IN_MEMORY;
typedef int16_t s16_memory IN_MEMORY;
typedef uint32_t u32_memory IN_MEMORY;
typedef int32_t s32_memory IN_MEMORY;
typedef int64_t s64_memory IN_MEMORY;
typedef float f32_memory IN_MEMORY;
typedef double f64_memory IN_MEMORY;

static inline float of_bf16(uint16_t raw)
{
    return float32((uint32_t)raw << 16);
}

/* Rounds to even; NaN keeps its sign and upper payload. A NaN that the type has stays as it is,
 * because ops that only move numbers change no bits; others become quiet. */
static inline uint16_t to_bf16(float x)
{
    uint32_t bits = bits32(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    uint32_t quiet = bits >> 16 | (bits & 0xffff ? 0x40 : 0);
    return (uint16_t)((bits & ~SIGN32) > 0x7f800000 ? quiet : rounded);
}

/* The fields are moved into place and the exponent corrected; numbers below the normal range get
 * theirs from a subtraction that shifts the leading zeros out. */
static inline float of_f16(uint16_t raw)
{
    uint32_t size = raw & 0x7fffU, sign = (uint32_t)(raw & 0x8000) << 16, field = size << 13;
    float normal = float32(field + ((127 - 15) << 23));
    float small = float32(field + ((127 - 14) << 23)) - 0x1p-14f;
    float special = float32(field + ((255 - 31) << 23));
    float value = size < 0x400 ? small : normal;
    value = size < 0x7c00 ? value : special;
    return float32(bits32(value) | sign);
}

/* Numbers below the normal range are rounded by an addition that shifts them to the end of a float;
 * others in place, where a carry into the exponent does the right thing, up to infinity. A NaN as in bf16. */
static inline uint16_t to_f16(float x)
{
    uint32_t bits = bits32(x), size = bits & ~SIGN32, sign = bits >> 16 & 0x8000;
    uint32_t normal = (size - ((127 - 15) << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    uint32_t small = bits32(float32(size) + 0.5f) - bits32(0.5f);
    uint32_t quiet = (size >> 13 & 0x3ff) | (size & 0x1fff ? 0x7e00 : 0x7c00);
    uint32_t value = size < 0x38800000 ? small : normal;
    value = size < 0x47800000 ? value : 0x7c00;
    return (uint16_t)((size > 0x7f800000 ? quiet : value) | sign);
}

/* A load; dst is a register, src is not. A value that repeats is converted once. */
#define LOAD(name, stored, type, convert)                                                          \
    static void name(void *dst, const void *src, int64_t stride, int64_t count)                    \
    {                                                                                              \
        const stored *in = src;                                                                    \
        type *out = REGISTER(dst);                                                                 \
        if (count <= 0)                                                                            \
            return;                                                                                \
        if (stride == 1) {                                                                         \
            SEPARATE_STEPS                                                                         \
            for (int64_t i = 0; i < count; i++)                                                    \
                out[i] = (type)convert(in[i]);                                                     \
        } else if (stride == 0) {                                                                  \
            type value = (type)convert(in[0]);                                                     \
            int64_t whole = whole_count(count);                                                    \
            for (int64_t i = 0; i < whole; i++)                                                    \
                out[i] = value;                                                                    \
        } else {                                                                                   \
            SEPARATE_STEPS                                                                         \
            for (int64_t i = 0; i < count; i++)                                                    \
                out[i] = (type)convert(in[i * stride]);                                            \
        }                                                                                          \
    }
#define STORE(name, stored, type, convert)                                                         \
    static void name(void *dst, int64_t stride, const void *src, int64_t count)                    \
    {                                                                                              \
        const type *in = REGISTER(src);                                                            \
        stored *out = dst;                                                                         \
        if (stride == 1) {                                                                         \
            SEPARATE_STEPS                                                                         \
            for (int64_t i = 0; i < count; i++)                                                    \
                out[i] = (stored)convert(in[i]);                                                   \
        } else {                                                                                   \
            for (int64_t i = 0; i < count; i++)                                                    \
                out[i * stride] = (stored)convert(in[i]);                                          \
        }                                                                                          \
    }

#define AS_IS(x) (x)
#define TRUTH(x) ((x) != 0)
#define SIGNED_BITS(x, bits) ((int32_t)((uint32_t)(x) << (32 - (bits))) >> (32 - (bits)))
#define LOW_BITS(x, bits) ((int32_t)((uint32_t)(x) & ((1U << (bits)) - 1)))
#define S2_OF(x) SIGNED_BITS(x, 2)
#define S4_OF(x) SIGNED_BITS(x, 4)
#define U2_OF(x) LOW_BITS(x, 2)
#define U4_OF(x) LOW_BITS(x, 4)

#define MEMORY(p, stored, type, convert_in, convert_out)                                           \
    LOAD(load_##p, stored, type, convert_in)                                                       \
    STORE(store_##p, stored, type, convert_out)

MEMORY(PRED, u8_memory, int32_t, TRUTH, TRUTH)
MEMORY(S2, u8_memory, int32_t, S2_OF, U2_OF)
MEMORY(S4, u8_memory, int32_t, S4_OF, U4_OF)
MEMORY(U2, u8_memory, int32_t, U2_OF, U2_OF)
MEMORY(U4, u8_memory, int32_t, U4_OF, U4_OF)
MEMORY(S8, s8_memory, int32_t, AS_IS, AS_IS)
MEMORY(U8, u8_memory, int32_t, AS_IS, AS_IS)
MEMORY(S16, s16_memory, int32_t, AS_IS, AS_IS)
MEMORY(U16, u16_memory, int32_t, AS_IS, AS_IS)
MEMORY(32, s32_memory, int32_t, AS_IS, AS_IS)
MEMORY(64, s64_memory, int64_t, AS_IS, AS_IS)
MEMORY(F32, f32_memory, float, AS_IS, AS_IS)
MEMORY(F64, f64_memory, double, AS_IS, AS_IS)
MEMORY(BF16, u16_memory, float, of_bf16, to_bf16)
MEMORY(f16_plain, u16_memory, float, of_f16, to_f16)

/* Half floats by the processor's own conversion, which gives the same bits as the plain one but for NaNs, which it makes
 * quiet: where there is one, the plain one is taken. */
#if defined(__F16C__)
static inline bool has_nan(__m256 x)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)) != 0;
}

static inline void of_f16_vector(float *out, const u16_memory *in)
{
    __m256 x = _mm256_cvtph_ps(_mm_loadu_si128((const void *)in));
    if (!has_nan(x)) {
        _mm256_storeu_ps(out, x);
        return;
    }
    for (int i = 0; i < 8; i++)
        out[i] = of_f16(in[i]);
}

static inline __m128i to_f16_vector(const float *in)
{
    __m256 x = _mm256_loadu_ps(in);
    if (!has_nan(x))
        return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    uint16_t plain[8];
    for (int i = 0; i < 8; i++)
        plain[i] = to_f16(in[i]);
    return _mm_loadu_si128((const void *)plain);
}

static void load_F16(void *dst, const void *src, int64_t stride, int64_t count)
{
    const u16_memory *in = src;
    float *out = REGISTER(dst);
    if (stride != 1) {
        load_f16_plain(dst, src, stride, count);
        return;
    }
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        of_f16_vector(out + i, in + i);
    for (; i < count; i++)
        out[i] = of_f16(in[i]);
}

static void store_F16(void *dst, int64_t stride, const void *src, int64_t count)
{
    const float *in = REGISTER(src);
    u16_memory *out = dst;
    if (stride != 1) {
        store_f16_plain(dst, stride, src, count);
        return;
    }
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((void *)(out + i), to_f16_vector(in + i));
    for (; i < count; i++)
        out[i] = to_f16(in[i]);
}

static void round_F16(void *dst, const void *a, const void *b, const void *c, int64_t count)
{
    const float *in = REGISTER(a);
    float *out = REGISTER(dst);
    (void)b, (void)c;
    for (int64_t i = 0; i < whole_count(count); i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(to_f16_vector(in + i)));
}
#else
#define load_F16 load_f16_plain
#define store_F16 store_f16_plain
KERNEL(round_F16, float, float, float, of_f16(to_f16(xs[i])))
#endif

KERNEL(round_BF16, float, float, float, of_bf16(to_bf16(xs[i])))
KERNEL(round_S2, int32_t, int32_t, int32_t, SIGNED_BITS(xs[i], 2))
KERNEL(round_S4, int32_t, int32_t, int32_t, SIGNED_BITS(xs[i], 4))
KERNEL(round_S8, int32_t, int32_t, int32_t, SIGNED_BITS(xs[i], 8))
KERNEL(round_S16, int32_t, int32_t, int32_t, SIGNED_BITS(xs[i], 16))
KERNEL(round_U2, int32_t, int32_t, int32_t, LOW_BITS(xs[i], 2))
KERNEL(round_U4, int32_t, int32_t, int32_t, LOW_BITS(xs[i], 4))
KERNEL(round_U8, int32_t, int32_t, int32_t, LOW_BITS(xs[i], 8))
KERNEL(round_U16, int32_t, int32_t, int32_t, LOW_BITS(xs[i], 16))

/* A float within [low, end) is truncated; others become the nearest integer, NaN becomes 0. */
#define TO_INTEGER(name, from, type, plain, low, end, least, most)                                 \
    static inline type name(from x)                                                                \
    {                                                                                              \
        from safe = x >= (low) && x < (end) ? x : 0;                                               \
        type y = (type)(plain)safe;                                                                \
        y = x >= (end) ? (type)(most) : y;                                                         \
        return x < (low) ? (type)(least) : y;                                                      \
    }

TO_INTEGER(f32_to_i32, float, int32_t, int32_t, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX)
TO_INTEGER(f32_to_i64, float, int64_t, int64_t, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX)
TO_INTEGER(f64_to_i32, double, int32_t, int32_t, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX)
TO_INTEGER(f64_to_i64, double, int64_t, int64_t, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX)
TO_INTEGER(f32_to_u32, float, int32_t, uint32_t, 0, 0x1p32f, 0, UINT32_MAX)
TO_INTEGER(f32_to_u64, float, int64_t, uint64_t, 0, 0x1p64f, 0, UINT64_MAX)
TO_INTEGER(f64_to_u32, double, int32_t, uint32_t, 0, 0x1p32, 0, UINT32_MAX)
TO_INTEGER(f64_to_u64, double, int64_t, uint64_t, 0, 0x1p64, 0, UINT64_MAX)

KERNEL(convert_f32_f64, float, float, double, (double)xs[i])
KERNEL(convert_f64_f32, double, double, float, (float)xs[i])
KERNEL(convert_f32_i32, float, float, int32_t, f32_to_i32(xs[i]))
KERNEL(convert_f32_i64, float, float, int64_t, f32_to_i64(xs[i]))
KERNEL(convert_f64_i32, double, double, int32_t, f64_to_i32(xs[i]))
KERNEL(convert_f64_i64, double, double, int64_t, f64_to_i64(xs[i]))
KERNEL(convert_f32_u32, float, float, int32_t, f32_to_u32(xs[i]))
KERNEL(convert_f32_u64, float, float, int64_t, f32_to_u64(xs[i]))
KERNEL(convert_f64_u32, double, double, int32_t, f64_to_u32(xs[i]))
KERNEL(convert_f64_u64, double, double, int64_t, f64_to_u64(xs[i]))
KERNEL(convert_i32_f32, int32_t, int32_t, float, (float)xs[i])
KERNEL(convert_i32_f64, int32_t, int32_t, double, (double)xs[i])
KERNEL(convert_i32_i64, int32_t, int32_t, int64_t, xs[i])
KERNEL(convert_i64_f32, int64_t, int64_t, float, (float)xs[i])
KERNEL(convert_i64_f64, int64_t, int64_t, double, (double)xs[i])
KERNEL(convert_i64_i32, int64_t, int64_t, int32_t, (int32_t)xs[i])
KERNEL(convert_u32_f32, int32_t, int32_t, float, (float)(uint32_t)xs[i])
KERNEL(convert_u32_f64, int32_t, int32_t, double, (double)(uint32_t)xs[i])
KERNEL(convert_u32_i64, int32_t, int32_t, int64_t, (uint32_t)xs[i])
KERNEL(convert_u64_f32, int64_t, int64_t, float, (float)(uint64_t)xs[i])
KERNEL(convert_u64_f64, int64_t, int64_t, double, (double)(uint64_t)xs[i])

#endif
