/* Element types, and the numbers in them.
 *
 * One table defines every element type: its spellings, its width and how its bits are read. All
 * other code uses the class (boolean, signed, unsigned, float, complex) and converts through int64,
 * uint64 or double. An element narrower than a byte is stored in a byte of its own. A complex
 * number is two floats, its real part and its imaginary part: n of them are 2n elements of the type
 * of their parts, and code that only copies, hashes, prints or compares bits can take them as
 * those. */
#ifndef SF_IR_DTYPE_H
#define SF_IR_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef enum sf_class { SF_BOOLEAN, SF_SIGNED, SF_UNSIGNED, SF_FLOAT, SF_COMPLEX } sf_class;

/* id, StableHLO name, HLO name, safetensors name, class, bits, exponent bits, mantissa bits (of a part).
 * For floats narrower than 16 bits `special` in dtype.c says how infinities and NaN are coded. */
#define SF_DTYPES(X)                                                                               \
    X(PRED, "i1", "pred", "BOOL", SF_BOOLEAN, 1, 0, 0)                                             \
    X(S2, "i2", "s2", "I2", SF_SIGNED, 2, 0, 0)                                                    \
    X(S4, "i4", "s4", "I4", SF_SIGNED, 4, 0, 0)                                                    \
    X(S8, "i8", "s8", "I8", SF_SIGNED, 8, 0, 0)                                                    \
    X(S16, "i16", "s16", "I16", SF_SIGNED, 16, 0, 0)                                               \
    X(S32, "i32", "s32", "I32", SF_SIGNED, 32, 0, 0)                                               \
    X(S64, "i64", "s64", "I64", SF_SIGNED, 64, 0, 0)                                               \
    X(U2, "ui2", "u2", "U2", SF_UNSIGNED, 2, 0, 0)                                                 \
    X(U4, "ui4", "u4", "U4", SF_UNSIGNED, 4, 0, 0)                                                 \
    X(U8, "ui8", "u8", "U8", SF_UNSIGNED, 8, 0, 0)                                                 \
    X(U16, "ui16", "u16", "U16", SF_UNSIGNED, 16, 0, 0)                                            \
    X(U32, "ui32", "u32", "U32", SF_UNSIGNED, 32, 0, 0)                                            \
    X(U64, "ui64", "u64", "U64", SF_UNSIGNED, 64, 0, 0)                                            \
    X(F4E2M1FN, "f4E2M1FN", "f4e2m1fn", "F4", SF_FLOAT, 4, 2, 1)                                   \
    X(F6E2M3FN, "f6E2M3FN", "f6e2m3fn", "F6_E2M3", SF_FLOAT, 6, 2, 3)                              \
    X(F6E3M2FN, "f6E3M2FN", "f6e3m2fn", "F6_E3M2", SF_FLOAT, 6, 3, 2)                              \
    X(F8E3M4, "f8E3M4", "f8e3m4", "F8_E3M4", SF_FLOAT, 8, 3, 4)                                    \
    X(F8E4M3, "f8E4M3", "f8e4m3", "F8_E4M3_IEEE", SF_FLOAT, 8, 4, 3)                               \
    X(F8E4M3FN, "f8E4M3FN", "f8e4m3fn", "F8_E4M3", SF_FLOAT, 8, 4, 3)                              \
    X(F8E4M3FNUZ, "f8E4M3FNUZ", "f8e4m3fnuz", "F8_E4M3FNUZ", SF_FLOAT, 8, 4, 3)                    \
    X(F8E4M3B11FNUZ, "f8E4M3B11FNUZ", "f8e4m3b11fnuz", "F8_E4M3B11FNUZ", SF_FLOAT, 8, 4, 3)        \
    X(F8E5M2, "f8E5M2", "f8e5m2", "F8_E5M2", SF_FLOAT, 8, 5, 2)                                    \
    X(F8E5M2FNUZ, "f8E5M2FNUZ", "f8e5m2fnuz", "F8_E5M2FNUZ", SF_FLOAT, 8, 5, 2)                    \
    X(F8E8M0FNU, "f8E8M0FNU", "f8e8m0fnu", "F8_E8M0", SF_FLOAT, 8, 8, 0)                           \
    X(F16, "f16", "f16", "F16", SF_FLOAT, 16, 5, 10)                                               \
    X(BF16, "bf16", "bf16", "BF16", SF_FLOAT, 16, 8, 7)                                            \
    X(F32, "f32", "f32", "F32", SF_FLOAT, 32, 8, 23)                                               \
    X(F64, "f64", "f64", "F64", SF_FLOAT, 64, 11, 52)                                              \
    X(C64, "complex<f32>", "c64", "C64", SF_COMPLEX, 64, 8, 23)                                    \
    X(C128, "complex<f64>", "c128", "C128", SF_COMPLEX, 128, 11, 52)

typedef enum sf_dtype {
#define X(id, ...) SF_##id,
    SF_DTYPES(X)
#undef X
        SF_DTYPE_COUNT
} sf_dtype;

typedef struct sf_dtype_info {
    const char *name;        /* as StableHLO spells it */
    const char *hlo;         /* as HLO spells it */
    const char *safetensors; /* as safetensors spells it */
    sf_class class;
    uint8_t bits;  /* of the number */
    uint8_t bytes; /* of its storage */
    uint8_t exponent, mantissa;
} sf_dtype_info;

/* No element is wider. */
enum { SF_ELEMENT_BYTES = 16 };

const sf_dtype_info *sf_dtype_get(sf_dtype dtype);

/* False when no element type has that name. `spelling` picks the column. */
typedef enum sf_spelling { SF_SPELL_STABLEHLO, SF_SPELL_HLO, SF_SPELL_SAFETENSORS } sf_spelling;
bool sf_dtype_find(sf_spelling spelling, sf_str name, sf_dtype *out);

static inline bool sf_is_float(sf_dtype dtype)
{
    return sf_dtype_get(dtype)->class == SF_FLOAT;
}

static inline bool sf_is_complex(sf_dtype dtype)
{
    return sf_dtype_get(dtype)->class == SF_COMPLEX;
}

/* Types whose sums are rounded: floats and complex numbers. */
static inline bool sf_is_inexact(sf_dtype dtype)
{
    return sf_is_float(dtype) || sf_is_complex(dtype);
}

/* The type of the parts of a complex number; any other type is its own. */
static inline sf_dtype sf_part_of(sf_dtype dtype)
{
    return dtype == SF_C64 ? SF_F32 : dtype == SF_C128 ? SF_F64 : dtype;
}

/* How many elements of sf_part_of an element is: 2 or 1. */
static inline int sf_parts_of(sf_dtype dtype)
{
    return sf_is_complex(dtype) ? 2 : 1;
}

/* The complex numbers with parts of that type; false where there are none. */
static inline bool sf_complex_of(sf_dtype part, sf_dtype *out)
{
    *out = part == SF_F32 ? SF_C64 : SF_C128;
    return part == SF_F32 || part == SF_F64;
}

static inline bool sf_is_unsigned(sf_dtype dtype)
{
    return sf_dtype_get(dtype)->class == SF_UNSIGNED;
}

/* Rounds a double to the nearest number of a float type (ties to even), as stored there. */
double sf_round(sf_dtype dtype, double value);

/* Rounds to a float format of the given widths with IEEE infinities, as reduce_precision wants. */
double sf_round_format(double value, int exponent_bits, int mantissa_bits);

/* Reduces an integer to the width of an integer type: wraps, then sign- or zero-extends. For PRED
 * any non-zero value is 1. Unsigned 64-bit values travel as their two's complement. */
int64_t sf_wrap(sf_dtype dtype, int64_t value);

/* Element `index` of packed storage. A float type is read as double, all others as int64; the
 * `_f64` forms also convert integers, the `_i64` forms also truncate floats (saturating). Of a
 * complex number the real part is read, and a store sets the imaginary part to 0. */
double sf_load_f64(sf_dtype dtype, const void *data, int64_t index);
int64_t sf_load_i64(sf_dtype dtype, const void *data, int64_t index);
void sf_store_f64(sf_dtype dtype, void *data, int64_t index, double value);
void sf_store_i64(sf_dtype dtype, void *data, int64_t index, int64_t value);

/* `count` elements from `first` on; one dispatch for all of them. */
void sf_load_f64s(sf_dtype dtype, const void *data, int64_t first, int64_t count, double *out);
void sf_load_i64s(sf_dtype dtype, const void *data, int64_t first, int64_t count, int64_t *out);
void sf_store_f64s(sf_dtype dtype, void *data, int64_t first, int64_t count, const double *in);
void sf_store_i64s(sf_dtype dtype, void *data, int64_t first, int64_t count, const int64_t *in);

/* The bit pattern of element `index`, and the element from a bit pattern. For complex numbers use
 * the type of their parts: an element of C128 is too wide. */
uint64_t sf_load_bits(sf_dtype dtype, const void *data, int64_t index);
void sf_store_bits(sf_dtype dtype, void *data, int64_t index, uint64_t bits);

#endif
