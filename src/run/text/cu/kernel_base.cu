/* What every generated kernel stands on: the numbers of the element types, and the arithmetic of loops.
 *
 * The text is C and C++ at once. NVRTC compiles it for the GPU; the compiler of the system for the host, where a small
 * driver (test/emulator/emulator.c) runs the threads of a block one by one, so that what is tested without a GPU is this text.
 */
typedef signed char s8;
typedef unsigned char u8;
typedef short s16;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#if defined(__CUDACC__)
#define KERNEL extern "C" __global__ void
#define DEVICE static __device__ __forceinline__
#define LARGE static __device__ __noinline__
#define TABLE static __device__ const
#define SHARED __shared__
#define DYNAMIC_SHARED(name) extern __shared__ __align__(1024) u8 name[]
#define BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define BARRIER() __syncthreads()
#define GRID_BLOCK ((s64)blockIdx.x)
#define GRID_BLOCKS ((s64)gridDim.x)
#if __CUDACC_VER_MAJOR__ >= 12 && __CUDA_ARCH__ >= 700
#define FIXED const __grid_constant__ /* indexed where it stands, without a copy for each thread */
#else
#define FIXED const
#endif
#define THREAD ((int)threadIdx.x)
#define THREADS ((int)blockDim.x)
#define SHUFFLE(x, other) __shfl_xor_sync(0xffffffffu, x, other)
#define LANES_WITH(x) __match_any_sync(0xffffffffu, x) /* of this warp: a bit for each that has the same x */
#define WARP_BARRIER() __syncwarp()
#define UNROLL _Pragma("unroll")
#define UNROLL_SOME _Pragma("unroll 4")
#define UNROLL_TWICE _Pragma("unroll 2")
#define ALIGNED(bytes) __align__(bytes)
#define INF32 __int_as_float(0x7f800000)
#define NAN32 __int_as_float(0x7fffffff)
#define INF64 __longlong_as_double(0x7ff0000000000000LL)
#define NAN64 __longlong_as_double(0x7fffffffffffffffLL)
#define NAN NAN32
#define INFINITY INF32
#define leading_zeros64(x) __clzll((s64)(x))
#define count_bits64(x) __popcll(x)
#else
#include <math.h>
#include <string.h>
#define KERNEL static void
#define DEVICE static inline
#define LARGE static
#define TABLE static const
#define SHARED static _Thread_local
#define DYNAMIC_SHARED(name) static _Thread_local u8 name[232448] __attribute__((aligned(1024)))
#define BOUNDS(threads, blocks)
static _Thread_local s64 sf_block, sf_blocks;
static _Thread_local int sf_thread, sf_threads;
static _Thread_local void (*sf_barrier)(void);

/* Where the one who runs kernels finds them. */
void sf_here(s64 **block, s64 **blocks, int **thread, int **threads, void (***barrier)(void))
{
    *block = &sf_block;
    *blocks = &sf_blocks;
    *thread = &sf_thread;
    *threads = &sf_threads;
    *barrier = &sf_barrier;
}

static _Thread_local union {
    f32 f32s[1024];
    f64 f64s[1024];
    s32 s32s[1024];
    s64 s64s[1024];
} sf_shuffled;
#define BARRIER() sf_barrier()
#define GRID_BLOCK sf_block
#define GRID_BLOCKS sf_blocks
#define FIXED const
#define THREAD sf_thread
#define THREADS sf_threads
#define SHUFFLER(type)                                                                             \
    static type shuffle_##type(type x, int other)                                                  \
    {                                                                                              \
        sf_shuffled.type##s[sf_thread] = x;                                                        \
        sf_barrier();                                                                              \
        x = sf_shuffled.type##s[sf_thread ^ other];                                                \
        sf_barrier();                                                                              \
        return x;                                                                                  \
    }
SHUFFLER(f32)
SHUFFLER(f64)
SHUFFLER(s32)
SHUFFLER(s64)
#define SHUFFLE(x, other)                                                                          \
    _Generic((x), f32 : shuffle_f32, f64 : shuffle_f64, s32 : shuffle_s32, s64 : shuffle_s64)(x, other)
#define WARP_BARRIER() sf_barrier()
static inline u32 lanes_with(s32 x)
{
    u32 lanes = 0;
    sf_shuffled.s32s[sf_thread] = x;
    sf_barrier();
    for (int lane = 0; lane < 32; lane++)
        if (sf_shuffled.s32s[sf_thread / 32 * 32 + lane] == x)
            lanes |= 1u << lane;
    sf_barrier();
    return lanes;
}
#define LANES_WITH(x) lanes_with(x)
#define UNROLL
#define UNROLL_SOME
#define UNROLL_TWICE
#define ALIGNED(bytes)
#define INF32 INFINITY
#define NAN32 NAN
#define INF64 ((f64)INFINITY)
#define NAN64 ((f64)NAN)
#define leading_zeros64(x) ((x) == 0 ? 64 : __builtin_clzll(x))
#define count_bits64(x) __builtin_popcountll(x)
#endif

/* What is dealt out among several loops says otherwise (run/text/text_fused_launch.c). */
#define BLOCK GRID_BLOCK
#define BLOCKS GRID_BLOCKS

/* Bits */

DEVICE u32 bits32(f32 x)
{
    union {
        f32 x;
        u32 bits;
    } both;
    both.x = x;
    return both.bits;
}

DEVICE f32 float32(u32 bits)
{
    union {
        f32 x;
        u32 bits;
    } both;
    both.bits = bits;
    return both.x;
}

DEVICE u64 bits64(f64 x)
{
    union {
        f64 x;
        u64 bits;
    } both;
    both.x = x;
    return both.bits;
}

DEVICE f64 float64(u64 bits)
{
    union {
        f64 x;
        u64 bits;
    } both;
    both.bits = bits;
    return both.x;
}

#define SIGN32 0x80000000u
#define SIGN64 (1ull << 63)

/* Narrow floats */

/* How a format codes what is no finite number; ir/dtype.c says what these are. */
#define IEEE 0
#define FN 1
#define FNUZ 2
#define FINITE 3
#define SCALE 4

DEVICE u64 largest_bits(int exponent, int mantissa, int special)
{
    u64 ones = (1ull << (exponent + mantissa)) - 1;
    if (special == IEEE)
        return ones - (1ull << mantissa);
    return special == FN || special == SCALE ? ones - 1 : ones;
}

LARGE f64 decode_bits(u64 bits, int width, int exponent, int mantissa, int bias, int special)
{
    if (special == SCALE)
        return bits == 0xff ? NAN64 : bits ? float64((bits - bias + 1023) << 52) : ldexp(1.0, -bias);
    u64 sign = bits >> (width - 1) & 1, size = bits & ((1ull << (width - 1)) - 1);
    if (special == FNUZ && size == 0)
        return sign ? NAN64 : 0.0;
    u64 fraction = (size & ((1ull << mantissa) - 1)) << (52 - mantissa), field = size >> mantissa;
    if (size > largest_bits(exponent, mantissa, special))
        return float64(sign << 63 | 2047ull << 52 | (special == IEEE ? fraction : 1ull << 51));
    if (field == 0) {
        f64 value = ldexp((f64)size, 1 - bias - mantissa);
        return sign ? -value : value;
    }
    return float64(sign << 63 | (field + 1023 - bias) << 52 | fraction);
}

DEVICE u64 encode_nan(u64 sign, f64 value, int width, int exponent, int mantissa, int special)
{
    u64 ones = (1ull << (exponent + mantissa)) - 1;
    if (special == IEEE)
        return sign | (largest_bits(exponent, mantissa, IEEE) + 1) | 1ull << (mantissa - 1) |
               (bits64(value) & ((1ull << 52) - 1)) >> (52 - mantissa);
    if (special == FN)
        return sign | ones;
    return special == SCALE ? ones : 1ull << (width - 1);
}

/* The nearest size, ties to even; all ones where it is too large. */
DEVICE u64 encode_size(f64 value, int exponent_bits, int mantissa, int bias, int special)
{
    int exponent = (int)(bits64(value) >> 52) - 1023, drop = 52 - mantissa;
    if (exponent == -1023)
        return 0;
    u64 significand = (bits64(value) & ((1ull << 52) - 1)) | 1ull << 52;
    int field = exponent + bias - 1;
    if (special == SCALE) {
        if (field < -1)
            return 0;
    } else if (field < 0) {
        drop -= field;
        field = 0;
    }
    if (drop > 53)
        return 0;
    if (field >= 1 << exponent_bits)
        return ~0ull;
    u64 kept = significand >> drop, rest = significand & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    kept += rest > half || (rest == half && (kept & 1));
    return (u64)((s64)field * (1ll << mantissa) + (s64)kept);
}

LARGE u64 encode_bits(f64 value, int width, int exponent, int mantissa, int bias, int special)
{
    int negative = (int)(bits64(value) >> 63);
    u64 sign = (u64)negative << (width - 1);
    if (value != value || (special == SCALE && (negative || value == 0)))
        return encode_nan(sign, value, width, exponent, mantissa, special);
    u64 most = largest_bits(exponent, mantissa, special);
    u64 size = fabs(value) == INF64 ? ~0ull : encode_size(fabs(value), exponent, mantissa, bias, special);
    if (size > most) {
        if (special == FN || special == FNUZ || special == SCALE)
            return encode_nan(sign, value, width, exponent, mantissa, special);
        size = special == IEEE ? most + 1 : most;
    }
    return (size == 0 && special == FNUZ ? 0 : sign) | size;
}

/* Between float and double a NaN keeps its bits: what only moves numbers changes none. */
DEVICE f64 wide_nan(f32 x)
{
    u64 bits = bits32(x);
    return float64((bits & SIGN32) << 32 | 0x7ff0000000000000ull | (bits & 0x7fffff) << 29);
}

DEVICE f32 narrow_nan(f64 x)
{
    u64 bits = bits64(x);
    u32 narrow = (u32)(bits >> 32 & SIGN32) | 0x7f800000u | (u32)(bits >> 29 & 0x7fffff);
    return float32(narrow & 0x7fffff ? narrow : narrow | 0x400000);
}

DEVICE f32 get_bf16(u16 raw)
{
    return float32((u32)raw << 16);
}

DEVICE u16 put_bf16(f32 x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    u16 raw;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(raw) : "f"(x));
    return raw;
#endif
    u32 bits = bits32(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    u32 quiet = bits >> 16 | (bits & 0xffff ? 0x40 : 0);
    return (u16)((bits & ~SIGN32) > 0x7f800000 ? quiet : rounded);
}

/* Two of them in a word, the first in its lower half. Sums and products of numbers of 8 bits, rounded to float and then again, are
 * what is rounded once: a float has more than twice as many bits, and two more. So arithmetic on pairs gives what floats give. */
#define HALF_BF16(pair, k) float32((k) % 2 ? (pair)&0xffff0000u : (pair) << 16)

/* Of floats that are such numbers. */
DEVICE u32 join_bf16(f32 low, f32 high)
{
#if defined(__CUDA_ARCH__)
    return __byte_perm(bits32(low), bits32(high), 0x7632);
#else
    return bits32(low) >> 16 | (bits32(high) & 0xffff0000u);
#endif
}

DEVICE u32 pack_bf16(f32 low, f32 high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return put_bf16(low) | (u32)put_bf16(high) << 16;
#endif
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define PAIRS(name, sign)                                                                          \
    DEVICE u32 name##_pair(u32 x, u32 y)                                                           \
    {                                                                                              \
        u32 pair;                                                                                  \
        asm(#name ".rn.bf16x2 %0, %1, %2;" : "=r"(pair) : "r"(x), "r"(y));                         \
        return pair;                                                                               \
    }
#else
#define PAIRS(name, sign)                                                                          \
    DEVICE u32 name##_pair(u32 x, u32 y)                                                           \
    {                                                                                              \
        return pack_bf16(HALF_BF16(x, 0) sign HALF_BF16(y, 0),                                     \
                         HALF_BF16(x, 1) sign HALF_BF16(y, 1));                                    \
    }
#endif
PAIRS(add, +)
PAIRS(sub, -)
PAIRS(mul, *)

/* Rounded once: the float on the way is rounded to odd. */
DEVICE u16 put_bf16_wide(f64 value)
{
    f32 nearest = (f32)value;
    u32 bits = bits32(nearest);
    bits -= fabs((f64)nearest) > fabs(value);
    bits |= (f64)nearest != value;
    u32 rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (u16)(value != value ? bits32(narrow_nan(value)) >> 16 | 0x40 : rounded);
}

/* The GPU has an instruction for either; what these make of a NaN is one. */
DEVICE f32 get_f16(u16 raw)
{
#if defined(__CUDA_ARCH__)
    f32 number;
    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(raw));
    return number;
#endif
    u32 size = raw & 0x7fffu, sign = (u32)(raw & 0x8000) << 16, field = size << 13;
    f32 normal = float32(field + ((127 - 15) << 23));
    f32 small = float32(field + ((127 - 14) << 23)) - 6.103515625e-05f;
    f32 special = float32(field + ((255 - 31) << 23));
    f32 value = size < 0x400 ? small : normal;
    value = size < 0x7c00 ? value : special;
    return float32(bits32(value) | sign);
}

DEVICE u16 put_f16(f32 x)
{
#if defined(__CUDA_ARCH__)
    u16 raw;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(raw) : "f"(x));
    return raw;
#endif
    u32 bits = bits32(x), size = bits & ~SIGN32, sign = bits >> 16 & 0x8000;
    u32 normal = (size - ((127 - 15) << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    u32 small = bits32(float32(size) + 0.5f) - bits32(0.5f);
    u32 quiet = (size >> 13 & 0x3ff) | (size & 0x1fff ? 0x7e00 : 0x7c00);
    u32 value = size < 0x38800000 ? small : normal;
    value = size < 0x47800000 ? value : 0x7c00;
    return (u16)((size > 0x7f800000 ? quiet : value) | sign);
}

#define NARROW_IN(name, get, put, ...)                                                             \
    DEVICE f64 wide_##name(u8 raw)                                                                 \
    {                                                                                              \
        return decode_bits(raw, __VA_ARGS__);                                                      \
    }                                                                                              \
    DEVICE u8 put_##name##_wide(f64 x)                                                             \
    {                                                                                              \
        return (u8)encode_bits(x, __VA_ARGS__);                                                    \
    }                                                                                              \
    DEVICE f32 get(u8 raw)                                                                         \
    {                                                                                              \
        f64 x = wide_##name(raw);                                                                  \
        return x == x ? (f32)x : narrow_nan(x);                                                    \
    }                                                                                              \
    DEVICE u8 put(f32 x)                                                                           \
    {                                                                                              \
        return put_narrow(x, put_##name##_wide(x == x ? (f64)x : wide_nan(x)), __VA_ARGS__);       \
    }
#define NARROW(name, ...) NARROW_IN(name, get_##name, put_##name, __VA_ARGS__)

/* Likewise, for types that products of f32 are computed in, without doubles. `most` is the first float, as bits, that is rounded to no number of the
 * type, and `grain` the float whose last bit is that of the smallest numbers. */
#define NARROW_FAST(name, most, grain, width, exponent, mantissa, bias, special)                   \
    NARROW_IN(name, get_##name##_any, put_##name##_any, width, exponent, mantissa, bias, special)  \
    DEVICE f32 get_##name(u8 raw)                                                                  \
    {                                                                                              \
        u32 size = raw & 0x7fu, sign = (u32)(raw & 0x80) << 24, field = size << (23 - mantissa);   \
        f32 normal = float32(field + ((127 - bias) << 23));                                        \
        f32 small = float32(field + ((128 - bias) << 23)) - float32((128 - bias) << 23);           \
        f32 value = float32(bits32(size >> mantissa ? normal : small) | sign);                     \
        return size > largest_bits(exponent, mantissa, special) ? get_##name##_any(raw) : value;   \
    }                                                                                              \
    DEVICE u8 put_##name(f32 x)                                                                    \
    {                                                                                              \
        u32 size = bits32(x) & ~SIGN32, sign = bits32(x) >> 24 & 0x80;                             \
        u32 half = (1u << (22 - mantissa)) - 1 + (size >> (23 - mantissa) & 1);                    \
        u32 normal = (size - ((127 - bias) << 23) + half) >> (23 - mantissa);                      \
        u32 small = bits32(float32(size) + grain) - bits32(grain);                                 \
        if (size >= most)                                                                          \
            return put_##name##_any(x);                                                            \
        return (u8)((size >> 23 > 127 - bias ? normal : small) | sign);                            \
    }

/* A NaN that the type has is stored as it is. */
DEVICE u8 put_narrow(f32 x, u8 otherwise, int width, int exponent, int mantissa, int bias, int special)
{
    u32 bits = bits32(x);
    if (x == x || special != IEEE || (bits & ((1u << (23 - mantissa)) - 1)) != 0)
        return otherwise;
    return (u8)((bits >> 31) << (width - 1) | ((1u << exponent) - 1) << mantissa |
                (bits & 0x7fffff) >> (23 - mantissa));
}

NARROW(f4e2m1fn, 4, 2, 1, 1, FINITE)
NARROW(f6e2m3fn, 6, 2, 3, 1, FINITE)
NARROW(f6e3m2fn, 6, 3, 2, 3, FINITE)
NARROW(f8e3m4, 8, 3, 4, 3, IEEE)
NARROW(f8e4m3, 8, 4, 3, 7, IEEE)
NARROW_FAST(f8e4m3fn, 0x43e80001u, 16384.0f, 8, 4, 3, 7, FN)
NARROW(f8e4m3fnuz, 8, 4, 3, 8, FNUZ)
NARROW(f8e4m3b11fnuz, 8, 4, 3, 11, FNUZ)
NARROW_FAST(f8e5m2, 0x47700000u, 128.0f, 8, 5, 2, 15, IEEE)
NARROW(f8e5m2fnuz, 8, 5, 2, 16, FNUZ)
NARROW(f8e8m0fnu, 8, 8, 0, 127, SCALE)

/* Elements: raw_NAME as they lie in memory, get_NAME as a register of a loop has them, put_NAME back. */

typedef u8 raw_pred, raw_s2, raw_s4, raw_u2, raw_u4, raw_u8, raw_f4e2m1fn, raw_f6e2m3fn, raw_f6e3m2fn,
    raw_f8e3m4, raw_f8e4m3, raw_f8e4m3fn, raw_f8e4m3fnuz, raw_f8e4m3b11fnuz, raw_f8e5m2, raw_f8e5m2fnuz,
    raw_f8e8m0fnu;
typedef s8 raw_s8;
typedef s16 raw_s16;
typedef u16 raw_u16, raw_f16, raw_bf16;
typedef s32 raw_s32, raw_u32;
typedef s64 raw_s64, raw_u64;
typedef f32 raw_f32;
typedef f64 raw_f64;

#define SIGNED_BITS(x, bits) ((s32)((u32)(x) << (32 - (bits))) >> (32 - (bits)))
#define LOW_BITS(x, bits) ((s32)((u32)(x) & ((1u << (bits)) - 1)))
#define get_pred(x) ((s32)((x) != 0))
#define put_pred(x) ((u8)((x) != 0))
#define get_s2(x) SIGNED_BITS(x, 2)
#define put_s2(x) ((u8)LOW_BITS(x, 2))
#define get_s4(x) SIGNED_BITS(x, 4)
#define put_s4(x) ((u8)LOW_BITS(x, 4))
#define get_u2(x) LOW_BITS(x, 2)
#define put_u2(x) ((u8)LOW_BITS(x, 2))
#define get_u4(x) LOW_BITS(x, 4)
#define put_u4(x) ((u8)LOW_BITS(x, 4))
#define get_s8(x) ((s32)(x))
#define put_s8(x) ((s8)(x))
#define get_u8(x) ((s32)(x))
#define put_u8(x) ((u8)(x))
#define get_s16(x) ((s32)(x))
#define put_s16(x) ((s16)(x))
#define get_u16(x) ((s32)(x))
#define put_u16(x) ((u16)(x))
#define get_s32(x) (x)
#define put_s32(x) (x)
#define get_u32(x) (x)
#define put_u32(x) (x)
#define get_s64(x) (x)
#define put_s64(x) (x)
#define get_u64(x) (x)
#define put_u64(x) (x)
#define get_f32(x) (x)
#define put_f32(x) (x)
#define get_f64(x) (x)
#define put_f64(x) (x)

/* Memory of a parameter p: element i, and from i on so many. With CHECKS (run/text/kernel_check.h) a kernel knows which bytes are
 * the parameter's, behind p. What would touch others is noted, the first of it, and goes to memory that nobody reads. */
#ifdef CHECKS
typedef struct fault {
    s32 is_noted, param;
    s64 first, bytes, low, high, block;
    s32 thread, own;
} fault;

LARGE char *note_fault(char *p, s64 first, s64 bytes, s64 low, s64 high, s64 block, int param, int own, char *faults)
{
    fault *f = (fault *)faults;
#if defined(__CUDACC__)
    int is_mine = atomicCAS(&f->is_noted, 0, 1) == 0;
#else
    int is_mine = f->is_noted == 0;
#endif
    (void)p;
    if (is_mine) {
        f->param = param;
        f->first = first;
        f->bytes = bytes;
        f->low = low;
        f->high = high;
        f->block = block;
        f->thread = THREAD;
        f->own = own;
        f->is_noted = 1;
    }
    return faults + 1024;
}

#define MEMORY(type, p, i, n)                                                                      \
    ((type *)((i) * (s64)sizeof(type) >= p##_low && ((i) + (n)) * (s64)sizeof(type) <= p##_high    \
                  ? (p) + (i) * (s64)sizeof(type)                                                  \
                  : note_fault(p, (i) * (s64)sizeof(type), (n) * (s64)sizeof(type), p##_low, p##_high, GRID_BLOCK, p##_is, own, faults)))
#define AT(type, p, i) (*MEMORY(type, p, (s64)(i), 1))
#define SOME(type, p, i, n) MEMORY(type, p, (s64)(i), (s64)(n))
#else
#define AT(type, p, i) (((type *)(p))[i])
#define SOME(type, p, i, n) ((type *)(p) + (i))
#endif

#define LOAD(name, p, i) get_##name(AT(const raw_##name, p, i))
#define STORE(name, p, i, x) (AT(raw_##name, p, i) = put_##name(x))

/* Rounding a register to a type that is narrower. */
#define round_pred(x) (x)
#define round_s2(x) SIGNED_BITS(x, 2)
#define round_s4(x) SIGNED_BITS(x, 4)
#define round_s8(x) SIGNED_BITS(x, 8)
#define round_s16(x) SIGNED_BITS(x, 16)
#define round_u2(x) LOW_BITS(x, 2)
#define round_u4(x) LOW_BITS(x, 4)
#define round_u8(x) LOW_BITS(x, 8)
#define round_u16(x) LOW_BITS(x, 16)
#define round_s32(x) (x)
#define round_u32(x) (x)
#define round_s64(x) (x)
#define round_u64(x) (x)
#define round_f32(x) (x)
#define round_f64(x) (x)
#define round_bf16(x) get_bf16(put_bf16(x))
#define round_f16(x) get_f16(put_f16(x))
#define round_f4e2m1fn(x) get_f4e2m1fn(put_f4e2m1fn(x))
#define round_f6e2m3fn(x) get_f6e2m3fn(put_f6e2m3fn(x))
#define round_f6e3m2fn(x) get_f6e3m2fn(put_f6e3m2fn(x))
#define round_f8e3m4(x) get_f8e3m4(put_f8e3m4(x))
#define round_f8e4m3(x) get_f8e4m3(put_f8e4m3(x))
#define round_f8e4m3fn(x) get_f8e4m3fn(put_f8e4m3fn(x))
#define round_f8e4m3fnuz(x) get_f8e4m3fnuz(put_f8e4m3fnuz(x))
#define round_f8e4m3b11fnuz(x) get_f8e4m3b11fnuz(put_f8e4m3b11fnuz(x))
#define round_f8e5m2(x) get_f8e5m2(put_f8e5m2(x))
#define round_f8e5m2fnuz(x) get_f8e5m2fnuz(put_f8e5m2fnuz(x))
#define round_f8e8m0fnu(x) get_f8e8m0fnu(put_f8e8m0fnu(x))

/* Several elements at once, where they stand at a multiple of their size. */
#if defined(__CUDACC__)
DEVICE void move_elements(void *to, const void *from, int bytes)
{
    if (bytes % 16 == 0) {
        UNROLL
        for (int i = 0; i < bytes / 16; i++)
            ((uint4 *)to)[i] = ((const uint4 *)from)[i];
    } else if (bytes % 8 == 0) {
        *(uint2 *)to = *(const uint2 *)from;
    } else if (bytes % 4 == 0) {
        *(u32 *)to = *(const u32 *)from;
    } else if (bytes == 2) {
        *(u16 *)to = *(const u16 *)from;
    } else {
        *(u8 *)to = *(const u8 *)from;
    }
}
#else
#define move_elements(to, from, bytes) memcpy(to, from, bytes)
#endif

/* The arithmetic of loops (prog/vop.h), by class: _32 and _64 of floats, _s32 and _s64 of integers */

#define FLOATS(type, bits, of_bits, SIGN_BIT, p, suffix)                                           \
    DEVICE type abs_##p(type x)                                                                    \
    {                                                                                              \
        return of_bits(bits(x) & ~SIGN_BIT);                                                       \
    }                                                                                              \
    DEVICE type neg_##p(type x)                                                                    \
    {                                                                                              \
        return of_bits(bits(x) ^ SIGN_BIT);                                                        \
    }                                                                                              \
    DEVICE type sign_##p(type x)                                                                   \
    {                                                                                              \
        return x > 0 ? (type)1 : x < 0 ? (type)-1 : x;                                             \
    }                                                                                              \
    DEVICE type logistic_##p(type x)                                                               \
    {                                                                                              \
        type e = exp##suffix(-abs_##p(x));                                                         \
        return (x >= 0 ? (type)1 : e) / (1 + e);                                                   \
    }

FLOATS(f32, bits32, float32, SIGN32, f32, f)
FLOATS(f64, bits64, float64, SIGN64, f64, )

/* A NaN wins, and zeros have an order. */
#define EXTREMES(type, bits, of_bits, p)                                                           \
    DEVICE type max_##p(type x, type y)                                                            \
    {                                                                                              \
        type z = x > y ? x : y;                                                                    \
        z = x == y ? of_bits(bits(x) & bits(y)) : z;                                               \
        return x != x ? x : z;                                                                     \
    }                                                                                              \
    DEVICE type min_##p(type x, type y)                                                            \
    {                                                                                              \
        type z = x < y ? x : y;                                                                    \
        z = x == y ? of_bits(bits(x) | bits(y)) : z;                                               \
        return x != x ? x : z;                                                                     \
    }

EXTREMES(f64, bits64, float64, f64)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define EXTREME(name)                                                                              \
    DEVICE f32 name##_f32(f32 x, f32 y)                                                            \
    {                                                                                              \
        f32 z;                                                                                     \
        asm(#name ".NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));                              \
        return z;                                                                                  \
    }
EXTREME(max)
EXTREME(min)
#else
EXTREMES(f32, bits32, float32, f32)
#endif

#define COPY(x) (x)
#define sqrt_f32(x) sqrtf(x)
#define sqrt_f64(x) sqrt(x)
#define rsqrt_f32(x) (1.0f / sqrtf(x))
#define rsqrt_f64(x) (1.0 / sqrt(x))
#define cbrt_f32(x) cbrtf(x)
#define cbrt_f64(x) cbrt(x)
#define exp_f32(x) expf(x)
#define exp_f64(x) exp(x)
#define expm1_f32(x) expm1f(x)
#define expm1_f64(x) expm1(x)
#define log_f32(x) logf(x)
#define log_f64(x) log(x)
#define log1p_f32(x) log1pf(x)
#define log1p_f64(x) log1p(x)
#define tanh_f32(x) tanhf(x)
#define tanh_f64(x) tanh(x)
#define sin_f32(x) sinf(x)
#define sin_f64(x) sin(x)
#define cos_f32(x) cosf(x)
#define cos_f64(x) cos(x)
#define tan_f32(x) tanf(x)
#define tan_f64(x) tan(x)
#define erf_f32(x) erff(x)
#define erf_f64(x) erf(x)
#define floor_f32(x) floorf(x)
#define floor_f64(x) floor(x)
#define ceil_f32(x) ceilf(x)
#define ceil_f64(x) ceil(x)
#define round_afz_f32(x) roundf(x)
#define round_afz_f64(x) round(x)
#define round_even_f32(x) rintf(x)
#define round_even_f64(x) rint(x)
#define is_finite_f32(x) ((s32)(abs_f32(x) < INF32))
#define is_finite_f64(x) ((s32)(abs_f64(x) < INF64))
#define add_f32(x, y) ((x) + (y))
#define add_f64(x, y) ((x) + (y))
#define sub_f32(x, y) ((x) - (y))
#define sub_f64(x, y) ((x) - (y))
#define mul_f32(x, y) ((x) * (y))
#define mul_f64(x, y) ((x) * (y))
#define div_f32(x, y) ((x) / (y))
#define div_f64(x, y) ((x) / (y))
#define rem_f32(x, y) fmodf(x, y)
#define rem_f64(x, y) fmod(x, y)
#define pow_f32(x, y) powf(x, y)
#define pow_f64(x, y) pow(x, y)
#define atan2_f32(x, y) atan2f(x, y)
#define atan2_f64(x, y) atan2(x, y)
#define fma_f32(x, y, z) ((x) * (y) + (z))
#define fma_f64(x, y, z) ((x) * (y) + (z))

#define EQ(x, y) ((s32)((x) == (y)))
#define NE(x, y) ((s32)((x) != (y)))
#define LT(x, y) ((s32)((x) < (y)))
#define LE(x, y) ((s32)((x) <= (y)))
#define GT(x, y) ((s32)((x) > (y)))
#define GE(x, y) ((s32)((x) >= (y)))
#define SELECT(x, y, z) ((x) != 0 ? (y) : (z))
#define not_bool_s32(x) ((x) ^ 1)

LARGE s64 power_of_integer(s64 x, s64 y)
{
    if (y < 0)
        return x == -1 ? (y % 2 == 0 ? 1 : -1) : x == 1;
    u64 result = 1, base = (u64)x;
    for (u64 exponent = (u64)y; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return (s64)result;
}

#define INTEGERS(type, uint, p, width)                                                             \
    DEVICE type abs_##p(type x)                                                                    \
    {                                                                                              \
        return x < 0 ? (type)(0 - (uint)x) : x;                                                    \
    }                                                                                              \
    DEVICE type neg_##p(type x)                                                                    \
    {                                                                                              \
        return (type)(0 - (uint)x);                                                                \
    }                                                                                              \
    DEVICE type sign_##p(type x)                                                                   \
    {                                                                                              \
        return (type)((x > 0) - (x < 0));                                                          \
    }                                                                                              \
    DEVICE type not_##p(type x)                                                                    \
    {                                                                                              \
        return ~x;                                                                                 \
    }                                                                                              \
    DEVICE type add_##p(type x, type y)                                                            \
    {                                                                                              \
        return (type)((uint)x + (uint)y);                                                          \
    }                                                                                              \
    DEVICE type sub_##p(type x, type y)                                                            \
    {                                                                                              \
        return (type)((uint)x - (uint)y);                                                          \
    }                                                                                              \
    DEVICE type mul_##p(type x, type y)                                                            \
    {                                                                                              \
        return (type)((uint)x * (uint)y);                                                          \
    }                                                                                              \
    DEVICE type fma_##p(type x, type y, type z)                                                    \
    {                                                                                              \
        return (type)((uint)x * (uint)y + (uint)z);                                                \
    }                                                                                              \
    DEVICE type div_##p(type x, type y)                                                            \
    {                                                                                              \
        return y == 0 ? -1 : y == -1 ? (type)(0 - (uint)x) : x / y;                                \
    }                                                                                              \
    DEVICE type rem_##p(type x, type y)                                                            \
    {                                                                                              \
        return y == 0 ? x : y == -1 ? 0 : x % y;                                                   \
    }                                                                                              \
    DEVICE type udiv_##p(type x, type y)                                                           \
    {                                                                                              \
        return y == 0 ? -1 : (type)((uint)x / (uint)y);                                            \
    }                                                                                              \
    DEVICE type urem_##p(type x, type y)                                                           \
    {                                                                                              \
        return y == 0 ? x : (type)((uint)x % (uint)y);                                             \
    }                                                                                              \
    DEVICE type max_##p(type x, type y)                                                            \
    {                                                                                              \
        return x < y ? y : x;                                                                      \
    }                                                                                              \
    DEVICE type min_##p(type x, type y)                                                            \
    {                                                                                              \
        return x < y ? x : y;                                                                      \
    }                                                                                              \
    DEVICE type umax_##p(type x, type y)                                                           \
    {                                                                                              \
        return (uint)x < (uint)y ? y : x;                                                          \
    }                                                                                              \
    DEVICE type umin_##p(type x, type y)                                                           \
    {                                                                                              \
        return (uint)x < (uint)y ? x : y;                                                          \
    }                                                                                              \
    DEVICE type and_##p(type x, type y)                                                            \
    {                                                                                              \
        return x & y;                                                                              \
    }                                                                                              \
    DEVICE type or_##p(type x, type y)                                                             \
    {                                                                                              \
        return x | y;                                                                              \
    }                                                                                              \
    DEVICE type xor_##p(type x, type y)                                                            \
    {                                                                                              \
        return x ^ y;                                                                              \
    }                                                                                              \
    DEVICE type shl_##p(type x, type y)                                                            \
    {                                                                                              \
        return (uint)y < width ? (type)((uint)x << ((uint)y & (width - 1))) : 0;                   \
    }                                                                                              \
    DEVICE type ushr_##p(type x, type y)                                                           \
    {                                                                                              \
        return (uint)y < width ? (type)((uint)x >> ((uint)y & (width - 1))) : 0;                   \
    }                                                                                              \
    DEVICE type shr_##p(type x, type y)                                                            \
    {                                                                                              \
        return x >> ((uint)y < width ? y : width - 1);                                             \
    }                                                                                              \
    DEVICE type pow_##p(type x, type y)                                                            \
    {                                                                                              \
        return (type)power_of_integer(x, y);                                                       \
    }                                                                                              \
    DEVICE s32 ult_##p(type x, type y)                                                             \
    {                                                                                              \
        return (uint)x < (uint)y;                                                                  \
    }                                                                                              \
    DEVICE s32 ule_##p(type x, type y)                                                             \
    {                                                                                              \
        return (uint)x <= (uint)y;                                                                 \
    }                                                                                              \
    DEVICE s32 ugt_##p(type x, type y)                                                             \
    {                                                                                              \
        return (uint)x > (uint)y;                                                                  \
    }                                                                                              \
    DEVICE s32 uge_##p(type x, type y)                                                             \
    {                                                                                              \
        return (uint)x >= (uint)y;                                                                 \
    }

INTEGERS(s32, u32, s32, 32)
INTEGERS(s64, u64, s64, 64)

/* Between classes: floats are cut off within the range of the integer, NaN becomes 0; u: integers are unsigned. */
#define TO_INTEGER(name, from, type, plain, low, end, least, most)                                 \
    DEVICE type name(from x)                                                                       \
    {                                                                                              \
        from safe = x >= (low) && x < (end) ? x : 0;                                               \
        type y = (type)(plain)safe;                                                                \
        y = x >= (end) ? (type)(most) : y;                                                         \
        return x < (low) ? (type)(least) : y;                                                      \
    }

TO_INTEGER(f32_to_s32, f32, s32, s32, -2147483648.0f, 2147483648.0f, -2147483647 - 1, 2147483647)
TO_INTEGER(f32_to_s64, f32, s64, s64, -9223372036854775808.0f, 9223372036854775808.0f,
           -9223372036854775807ll - 1, 9223372036854775807ll)
TO_INTEGER(f64_to_s32, f64, s32, s32, -2147483648.0, 2147483648.0, -2147483647 - 1, 2147483647)
TO_INTEGER(f64_to_s64, f64, s64, s64, -9223372036854775808.0, 9223372036854775808.0,
           -9223372036854775807ll - 1, 9223372036854775807ll)
TO_INTEGER(f32_to_u32, f32, s32, u32, 0.0f, 4294967296.0f, 0, 4294967295u)
TO_INTEGER(f32_to_u64, f32, s64, u64, 0.0f, 18446744073709551616.0f, 0, ~0ull)
TO_INTEGER(f64_to_u32, f64, s32, u32, 0.0, 4294967296.0, 0, 4294967295u)
TO_INTEGER(f64_to_u64, f64, s64, u64, 0.0, 18446744073709551616.0, 0, ~0ull)
#define f32_to_f64(x) ((f64)(x))
#define f64_to_f32(x) ((f32)(x))
#define s32_to_f32(x) ((f32)(x))
#define s32_to_f64(x) ((f64)(x))
#define s32_to_s64(x) ((s64)(x))
#define s64_to_f32(x) ((f32)(x))
#define s64_to_f64(x) ((f64)(x))
#define s64_to_s32(x) ((s32)(x))
#define u32_to_f32(x) ((f32)(u32)(x))
#define u32_to_f64(x) ((f64)(u32)(x))
#define u32_to_s64(x) ((s64)(u32)(x))
#define u64_to_f32(x) ((f32)(u64)(x))
#define u64_to_f64(x) ((f64)(u64)(x))
#define u64_to_s32(x) ((s32)(x))

/* One value of all threads of a block, combined: threads of a warp by exchanges, warps through shared memory. Every
 * thread gets it. A block is whole warps, or a power of two. */
#define WARP_FOLD(combine, x)                                                                      \
    for (int lane = 16; lane > 0; lane /= 2)                                                       \
        if (lane < THREADS)                                                                        \
            x = combine(x, SHUFFLE(x, lane));
#define BLOCK_FOLD(type, combine, x, room)                                                         \
    do {                                                                                           \
        WARP_FOLD(combine, x)                                                                      \
        if (THREADS > 32) {                                                                        \
            if (THREAD % 32 == 0)                                                                  \
                ((type *)(room))[THREAD / 32] = x;                                                 \
            BARRIER();                                                                             \
            x = ((type *)(room))[0];                                                               \
            for (int warp = 1; warp < THREADS / 32; warp++)                                        \
                x = combine(x, ((type *)(room))[warp]);                                            \
            BARRIER();                                                                             \
        }                                                                                          \
    } while (0)

/* For op/pointwise/special_math.h, which may follow. */
#define log_gamma(x) lgamma(x)
