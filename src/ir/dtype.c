#include "ir/dtype.h"

#include <math.h>
#include <string.h>

/* How a float format encodes infinities, NaN and zero:
 *
 *     IEEE     the highest exponent is infinity (mantissa 0) or NaN; overflow gives infinity
 *     FN       no infinity; all ones is NaN, of either sign; overflow and infinity give NaN
 *     FNUZ     no infinity, no negative zero: its pattern is NaN; overflow and infinity give NaN
 *     FINITE   only numbers; overflow and infinity give the largest one, NaN gives minus zero
 *     SCALE    only powers of two: no sign, no zero, no mantissa; all ones is NaN, and so is the
 *              image of a number that is not positive. Too small a number becomes the smallest
 *
 * Where the format leaves a choice, it is that of ml_dtypes, which JAX uses. */
enum special { IEEE, FN, FNUZ, FINITE, SCALE };

struct format {
    enum special special;
    int bias;
};

static const struct format formats[SF_DTYPE_COUNT] = {
    [SF_F4E2M1FN] = {FINITE, 1},  [SF_F6E2M3FN] = {FINITE, 1},     [SF_F6E3M2FN] = {FINITE, 3},
    [SF_F8E3M4] = {IEEE, 3},      [SF_F8E4M3] = {IEEE, 7},         [SF_F8E4M3FN] = {FN, 7},
    [SF_F8E4M3FNUZ] = {FNUZ, 8},  [SF_F8E4M3B11FNUZ] = {FNUZ, 11}, [SF_F8E5M2] = {IEEE, 15},
    [SF_F8E5M2FNUZ] = {FNUZ, 16}, [SF_F8E8M0FNU] = {SCALE, 127},   [SF_F16] = {IEEE, 15},
    [SF_BF16] = {IEEE, 127},      [SF_F32] = {IEEE, 127},          [SF_F64] = {IEEE, 1023},
};

#define BYTES(bits) ((bits) <= 8 ? 1 : (bits) / 8)

static const sf_dtype_info infos[SF_DTYPE_COUNT] = {
#define X(id, name, hlo, safetensors, class, bits, exponent, mantissa)                             \
    [SF_##id] = {name, hlo, safetensors, class, bits, BYTES(bits), exponent, mantissa},
    SF_DTYPES(X)
#undef X
};

const sf_dtype_info *sf_dtype_get(sf_dtype dtype)
{
    return &infos[dtype];
}

static const char *spelling_of(const sf_dtype_info *info, sf_spelling spelling)
{
    switch (spelling) {
    case SF_SPELL_STABLEHLO:
        return info->name;
    case SF_SPELL_HLO:
        return info->hlo;
    case SF_SPELL_SAFETENSORS:
        return info->safetensors;
    }
    return info->name;
}

bool sf_dtype_find(sf_spelling spelling, sf_str name, sf_dtype *out)
{
    for (int i = 0; i < SF_DTYPE_COUNT; i++)
        if (sf_str_is(name, spelling_of(&infos[i], spelling))) {
            *out = (sf_dtype)i;
            return true;
        }
    return false;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

enum { DOUBLE_MANTISSA = 52, DOUBLE_BIAS = 1023, DOUBLE_MAX_EXPONENT = 2047 };
static const uint64_t sign_bit = UINT64_C(1) << 63;
static const uint64_t fraction_mask = (UINT64_C(1) << DOUBLE_MANTISSA) - 1;

/* The pattern of the largest finite magnitude. */
static uint64_t largest_bits(const sf_dtype_info *info, enum special special)
{
    uint64_t ones = (UINT64_C(1) << (info->exponent + info->mantissa)) - 1;
    if (special == IEEE)
        return ones - (UINT64_C(1) << info->mantissa);
    return special == FN || special == SCALE ? ones - 1 : ones;
}

/* The pattern of NaN. IEEE formats keep its sign and the upper part of its payload. */
static uint64_t encode_nan(const sf_dtype_info *info, enum special special, uint64_t sign,
                           double value)
{
    uint64_t ones = (UINT64_C(1) << (info->exponent + info->mantissa)) - 1;
    switch (special) {
    case IEEE: {
        uint64_t quiet = UINT64_C(1) << (info->mantissa - 1);
        uint64_t payload = (bits_of(value) & fraction_mask) >> (DOUBLE_MANTISSA - info->mantissa);
        return sign | (largest_bits(info, IEEE) + 1) | quiet | payload;
    }
    case FN:
        return sign | ones;
    case FNUZ:
    case FINITE:
        return UINT64_C(1) << (info->bits - 1);
    case SCALE:
        return ones;
    }
    return ones;
}

/* The pattern of the finite magnitude nearest to a positive double, ties to even; past `largest`
 * when there is none. The double is significand * 2^(exponent - 52); its lowest bits are dropped,
 * more of them for a number below the normal range, and the remainder is added to the exponent
 * field, where a carry has the right effect. */
static uint64_t encode_magnitude(const sf_dtype_info *info, const struct format *format,
                                 double value)
{
    int exponent = (int)(bits_of(value) >> DOUBLE_MANTISSA) - DOUBLE_BIAS;
    if (exponent == -DOUBLE_BIAS) /* below the normal doubles: below every other format too */
        return 0;
    uint64_t significand = (bits_of(value) & fraction_mask) | (UINT64_C(1) << DOUBLE_MANTISSA);
    int field = exponent + format->bias - 1;
    int drop = DOUBLE_MANTISSA - info->mantissa;
    if (format->special == SCALE) {
        if (field < -1)
            return 0;
    } else if (field < 0) {
        drop -= field;
        field = 0;
    }
    if (drop > DOUBLE_MANTISSA + 1)
        return 0;
    if (field >= 1 << info->exponent)
        return UINT64_MAX;
    uint64_t kept = significand >> drop;
    uint64_t rest = significand & ((UINT64_C(1) << drop) - 1), half = UINT64_C(1) << (drop - 1);
    kept += rest > half || (rest == half && (kept & 1));
    return (uint64_t)((int64_t)field * ((int64_t)1 << info->mantissa) + (int64_t)kept);
}

static uint64_t encode_value(sf_dtype dtype, double value)
{
    const sf_dtype_info *info = &infos[dtype];
    const struct format *format = &formats[dtype];
    bool negative = signbit(value);
    uint64_t sign = (uint64_t)negative << (info->bits - 1);
    if (isnan(value) || (format->special == SCALE && (negative || value == 0)))
        return encode_nan(info, format->special, sign, value);

    uint64_t most = largest_bits(info, format->special);
    uint64_t magnitude = isinf(value) ? UINT64_MAX : encode_magnitude(info, format, fabs(value));
    if (magnitude > most) {
        if (format->special == FN || format->special == FNUZ || format->special == SCALE)
            return encode_nan(info, format->special, sign, value);
        magnitude = format->special == IEEE ? most + 1 : most;
    }
    if (magnitude == 0 && format->special == FNUZ)
        sign = 0;
    return sign | magnitude;
}

static double decode_bits(sf_dtype dtype, uint64_t bits)
{
    const sf_dtype_info *info = &infos[dtype];
    const struct format *format = &formats[dtype];
    if (format->special == SCALE)
        return bits == 0xff ? (double)NAN : ldexp(1, (int)bits - format->bias);

    uint64_t sign = bits >> (info->bits - 1) & 1;
    uint64_t magnitude = bits & ((UINT64_C(1) << (info->bits - 1)) - 1);
    if (format->special == FNUZ && magnitude == 0)
        return sign ? (double)NAN : 0.0;

    uint64_t fraction = (magnitude & ((UINT64_C(1) << info->mantissa) - 1))
                        << (DOUBLE_MANTISSA - info->mantissa);
    uint64_t field = magnitude >> info->mantissa;
    if (magnitude > largest_bits(info, format->special)) {
        if (format->special != IEEE)
            fraction = UINT64_C(1) << (DOUBLE_MANTISSA - 1);
        return of_bits(sign << 63 | (uint64_t)DOUBLE_MAX_EXPONENT << DOUBLE_MANTISSA | fraction);
    }
    if (field == 0) {
        double value = ldexp((double)magnitude, 1 - format->bias - info->mantissa);
        return sign ? -value : value;
    }
    field += (uint64_t)(DOUBLE_BIAS - format->bias);
    return of_bits(sign << 63 | field << DOUBLE_MANTISSA | fraction);
}

double sf_round_format(double value, int exponent_bits, int mantissa_bits)
{
    uint64_t bits = bits_of(value), sign = bits & sign_bit, magnitude = bits & ~sign_bit;
    if (!isfinite(value))
        return value;
    if (mantissa_bits < DOUBLE_MANTISSA) {
        int drop = DOUBLE_MANTISSA - (mantissa_bits > 0 ? mantissa_bits : 0);
        uint64_t odd = magnitude >> drop & 1;
        magnitude += (UINT64_C(1) << (drop - 1)) - 1 + odd;
        magnitude &= ~((UINT64_C(1) << drop) - 1);
    }
    if (exponent_bits < 11) {
        int bias = exponent_bits > 0 ? (1 << (exponent_bits - 1)) - 1 : 0;
        int exponent = (int)(magnitude >> DOUBLE_MANTISSA) - DOUBLE_BIAS;
        if (exponent > bias)
            magnitude = (uint64_t)DOUBLE_MAX_EXPONENT << DOUBLE_MANTISSA;
        else if (exponent <= -bias)
            magnitude = 0;
    }
    return of_bits(sign | magnitude);
}

int64_t sf_wrap(sf_dtype dtype, int64_t value)
{
    const sf_dtype_info *info = &infos[dtype];
    if (info->class == SF_BOOLEAN)
        return value != 0;
    int unused = 64 - info->bits;
    uint64_t shifted = (uint64_t)value << unused;
    return info->class == SF_UNSIGNED ? (int64_t)(shifted >> unused) : (int64_t)shifted >> unused;
}

/* Truncates, saturates; NaN gives 0. */
static int64_t to_signed(double value, int bits)
{
    int64_t most = INT64_MAX >> (64 - bits);
    double limit = (double)(UINT64_C(1) << (bits - 1));
    if (value >= limit)
        return most;
    if (value <= -limit)
        return -most - 1;
    return isnan(value) ? 0 : (int64_t)value;
}

static uint64_t to_unsigned(double value, int bits)
{
    uint64_t most = UINT64_MAX >> (64 - bits);
    if (value >= 2 * (double)(UINT64_C(1) << (bits - 1)))
        return most;
    return value > 0 ? (uint64_t)value : 0;
}

/* Rounding to bf16 by way of float must not round twice. So the float is rounded to odd: towards
 * zero, with the lowest bit set when anything was lost. That is never a tie, and on the right side of
 * every number that bf16 has. */
static uint16_t bf16_of(double value)
{
    float nearest = (float)value;
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    bits -= fabs((double)nearest) > fabs(value);
    bits |= (double)nearest != value;
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(isnan(value) ? bits >> 16 | 0x40 : rounded);
}

static float float_of_bf16(uint16_t raw)
{
    uint32_t bits = (uint32_t)raw << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The loops of one element type. `data` is the first element to touch; the elements need not be
 * aligned. Each expression sees `dtype` and the element or number as `value`. */
typedef struct loops {
    void (*load_f64)(sf_dtype dtype, const char *data, int64_t count, double *out);
    void (*load_i64)(sf_dtype dtype, const char *data, int64_t count, int64_t *out);
    void (*store_f64)(sf_dtype dtype, char *data, int64_t count, const double *in);
    void (*store_i64)(sf_dtype dtype, char *data, int64_t count, const int64_t *in);
} loops;

#define LOAD_LOOP(function, stored, number, expression)                                            \
    static void function(sf_dtype dtype, const char *data, int64_t count, number *out)             \
    {                                                                                              \
        (void)dtype;                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            stored value;                                                                          \
            memcpy(&value, data + i * (int64_t)sizeof value, sizeof value);                        \
            out[i] = expression;                                                                   \
        }                                                                                          \
    }

#define STORE_LOOP(function, stored, number, expression)                                           \
    static void function(sf_dtype dtype, char *data, int64_t count, const number *in)              \
    {                                                                                              \
        (void)dtype;                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            number value = in[i];                                                                  \
            stored result = (stored)(expression);                                                  \
            memcpy(data + i * (int64_t)sizeof result, &result, sizeof result);                     \
        }                                                                                          \
    }

#define LOOPS(name, stored, load_f64, load_i64, store_f64, store_i64)                              \
    LOAD_LOOP(name##_load_f64, stored, double, load_f64)                                           \
    LOAD_LOOP(name##_load_i64, stored, int64_t, load_i64)                                          \
    STORE_LOOP(name##_store_f64, stored, double, store_f64)                                        \
    STORE_LOOP(name##_store_i64, stored, int64_t, store_i64)

#define SIGNED_LOOPS(name, stored, bits)                                                           \
    LOOPS(name, stored, (double)value, (int64_t)value, to_signed(value, bits), value)
#define UNSIGNED_LOOPS(name, stored, bits)                                                         \
    LOOPS(name, stored, (double)value, (int64_t)value, to_unsigned(value, bits), value)

#define LOW_BITS(number) ((uint64_t)(number) & ((UINT64_C(1) << infos[dtype].bits) - 1))

LOOPS(pred, uint8_t, value != 0, value != 0, value != 0, value != 0)
LOOPS(nibble, uint8_t, (double)sf_wrap(dtype, value), sf_wrap(dtype, value),
      LOW_BITS(infos[dtype].class == SF_SIGNED ? (uint64_t)to_signed(value, infos[dtype].bits)
                                               : to_unsigned(value, infos[dtype].bits)),
      LOW_BITS(value))
SIGNED_LOOPS(s8, int8_t, 8)
SIGNED_LOOPS(s16, int16_t, 16)
SIGNED_LOOPS(s32, int32_t, 32)
SIGNED_LOOPS(s64, int64_t, 64)
UNSIGNED_LOOPS(u8, uint8_t, 8)
UNSIGNED_LOOPS(u16, uint16_t, 16)
UNSIGNED_LOOPS(u32, uint32_t, 32)
UNSIGNED_LOOPS(u64, uint64_t, 64)
LOOPS(f8, uint8_t, decode_bits(dtype, value), to_signed(decode_bits(dtype, value), 64),
      encode_value(dtype, value), encode_value(dtype, (double)value))
LOOPS(f16, uint16_t, decode_bits(dtype, value), to_signed(decode_bits(dtype, value), 64),
      encode_value(dtype, value), encode_value(dtype, (double)value))
LOOPS(bf16, uint16_t, (double)float_of_bf16(value), to_signed((double)float_of_bf16(value), 64),
      bf16_of(value), bf16_of((double)value))
LOOPS(f32, float, (double)value, to_signed((double)value, 64), value, value)
LOOPS(f64, double, value, to_signed(value, 64), value, value)

/* Complex numbers: the real part is read and written. */
typedef struct pair32 {
    float real, imag;
} pair32;
typedef struct pair64 {
    double real, imag;
} pair64;

#define PAIR_STORE_LOOP(function, pair, part, number)                                              \
    static void function(sf_dtype dtype, char *data, int64_t count, const number *in)              \
    {                                                                                              \
        (void)dtype;                                                                               \
        for (int64_t i = 0; i < count; i++) {                                                      \
            pair result = {(part)in[i], 0};                                                        \
            memcpy(data + i * (int64_t)sizeof result, &result, sizeof result);                     \
        }                                                                                          \
    }

#define PAIR_LOOPS(name, pair, part)                                                               \
    LOAD_LOOP(name##_load_f64, pair, double, (double)value.real)                                   \
    LOAD_LOOP(name##_load_i64, pair, int64_t, to_signed((double)value.real, 64))                   \
    PAIR_STORE_LOOP(name##_store_f64, pair, part, double)                                          \
    PAIR_STORE_LOOP(name##_store_i64, pair, part, int64_t)

PAIR_LOOPS(c64, pair32, float)
PAIR_LOOPS(c128, pair64, double)

#define ROW(name)                                                                                  \
    {                                                                                              \
        name##_load_f64, name##_load_i64, name##_store_f64, name##_store_i64                       \
    }

static const loops table[SF_DTYPE_COUNT] = {
    [SF_PRED] = ROW(pred),   [SF_S2] = ROW(nibble),     [SF_S4] = ROW(nibble),
    [SF_S8] = ROW(s8),       [SF_S16] = ROW(s16),       [SF_S32] = ROW(s32),
    [SF_S64] = ROW(s64),     [SF_U2] = ROW(nibble),     [SF_U4] = ROW(nibble),
    [SF_U8] = ROW(u8),       [SF_U16] = ROW(u16),       [SF_U32] = ROW(u32),
    [SF_U64] = ROW(u64),     [SF_F4E2M1FN] = ROW(f8),   [SF_F6E2M3FN] = ROW(f8),
    [SF_F6E3M2FN] = ROW(f8), [SF_F8E3M4] = ROW(f8),     [SF_F8E4M3] = ROW(f8),
    [SF_F8E4M3FN] = ROW(f8), [SF_F8E4M3FNUZ] = ROW(f8), [SF_F8E4M3B11FNUZ] = ROW(f8),
    [SF_F8E5M2] = ROW(f8),   [SF_F8E5M2FNUZ] = ROW(f8), [SF_F8E8M0FNU] = ROW(f8),
    [SF_F16] = ROW(f16),     [SF_BF16] = ROW(bf16),     [SF_F32] = ROW(f32),
    [SF_F64] = ROW(f64),     [SF_C64] = ROW(c64),       [SF_C128] = ROW(c128),
};

static int64_t offset_of_element(sf_dtype dtype, int64_t index)
{
    return index * infos[dtype].bytes;
}

void sf_load_f64s(sf_dtype dtype, const void *data, int64_t first, int64_t count, double *out)
{
    if (count > 0)
        table[dtype].load_f64(dtype, (const char *)data + offset_of_element(dtype, first), count,
                              out);
}

void sf_load_i64s(sf_dtype dtype, const void *data, int64_t first, int64_t count, int64_t *out)
{
    if (count > 0)
        table[dtype].load_i64(dtype, (const char *)data + offset_of_element(dtype, first), count,
                              out);
}

void sf_store_f64s(sf_dtype dtype, void *data, int64_t first, int64_t count, const double *in)
{
    if (count > 0)
        table[dtype].store_f64(dtype, (char *)data + offset_of_element(dtype, first), count, in);
}

void sf_store_i64s(sf_dtype dtype, void *data, int64_t first, int64_t count, const int64_t *in)
{
    if (count > 0)
        table[dtype].store_i64(dtype, (char *)data + offset_of_element(dtype, first), count, in);
}

double sf_load_f64(sf_dtype dtype, const void *data, int64_t index)
{
    double value;
    sf_load_f64s(dtype, data, index, 1, &value);
    return value;
}

int64_t sf_load_i64(sf_dtype dtype, const void *data, int64_t index)
{
    int64_t value;
    sf_load_i64s(dtype, data, index, 1, &value);
    return value;
}

void sf_store_f64(sf_dtype dtype, void *data, int64_t index, double value)
{
    sf_store_f64s(dtype, data, index, 1, &value);
}

void sf_store_i64(sf_dtype dtype, void *data, int64_t index, int64_t value)
{
    sf_store_i64s(dtype, data, index, 1, &value);
}

double sf_round(sf_dtype dtype, double value)
{
    uint64_t storage[SF_ELEMENT_BYTES / sizeof(uint64_t)];
    sf_store_f64(dtype, storage, 0, value);
    return sf_load_f64(dtype, storage, 0);
}

uint64_t sf_load_bits(sf_dtype dtype, const void *data, int64_t index)
{
    const char *at = (const char *)data + offset_of_element(dtype, index);
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (infos[dtype].bytes) {
    case 1:
        memcpy(&one, at, sizeof one);
        return LOW_BITS(one);
    case 2:
        memcpy(&two, at, sizeof two);
        return two;
    case 4:
        memcpy(&four, at, sizeof four);
        return four;
    default:
        memcpy(&eight, at, sizeof eight);
        return eight;
    }
}

void sf_store_bits(sf_dtype dtype, void *data, int64_t index, uint64_t bits)
{
    char *at = (char *)data + offset_of_element(dtype, index);
    uint8_t one;
    uint16_t two = (uint16_t)bits;
    uint32_t four = (uint32_t)bits;
    switch (infos[dtype].bytes) {
    case 1:
        one = (uint8_t)LOW_BITS(bits);
        memcpy(at, &one, sizeof one);
        break;
    case 2:
        memcpy(at, &two, sizeof two);
        break;
    case 4:
        memcpy(at, &four, sizeof four);
        break;
    default:
        memcpy(at, &bits, sizeof bits);
        break;
    }
}
