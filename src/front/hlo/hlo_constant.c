/* Literals: 0.9, {1, 2}, { { 1, 2 }, { 3, 4 } }, (1, 2), true, nan, -inf. */
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "front/hlo/hlo_reader.h"

enum { CHUNK = 128 };

/* Numbers on their way into storage: elements, or the parts of complex ones. Those of a chunk are
 * converted in one go. */
typedef struct literal {
    sf_hlo_frame *frame;
    const sf_type *type;
    sf_dtype number;
    char *data;
    int64_t stored;
    int pending;
    union {
        double reals[CHUNK];
        int64_t integers[CHUNK];
    };
} literal;

static void flush_numbers(literal *lit)
{
    if (sf_is_float(lit->number))
        sf_store_f64s(lit->number, lit->data, lit->stored, lit->pending, lit->reals);
    else
        sf_store_i64s(lit->number, lit->data, lit->stored, lit->pending, lit->integers);
    lit->stored += lit->pending;
    lit->pending = 0;
}

/* As strtod, whatever the locale of the program. */
static double slow_number(const char *text, char **end)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return strtod(text, end);
    double value = strtod_l(text, end, c_locale);
    freelocale(c_locale);
    return value;
}

/* Decimal digits that fit in 53 bits, times a power of ten that a double holds exactly: one rounding
 * gives the nearest double. Nearly all numbers are of this kind. False for the others. */
static bool fast_number(const char *at, double *out, const char **end)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t digits = 0;
    int count = 0, exponent = 0;
    for (; *at >= '0' && *at <= '9' && count <= 18; at++, count++)
        digits = digits * 10 + (uint64_t)(*at - '0');
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9' && count <= 18; at++, count++, exponent--)
            digits = digits * 10 + (uint64_t)(*at - '0');
    if (count == 0 || count > 18 || *at == 'x')
        return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        bool is_negative = *at == '-';
        at += *at == '-' || *at == '+';
        int value = 0, length = 0;
        for (; *at >= '0' && *at <= '9' && length < 4; at++, length++)
            value = value * 10 + (*at - '0');
        if (length == 0 || length == 4)
            return false;
        exponent += is_negative ? -value : value;
    }
    if (digits >> 53 || exponent < -22 || exponent > 22)
        return false;
    *out = exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
    *end = at;
    return true;
}

/* nan, nan(0x1), inf: after the sign. The payload of a NaN is the bits of its mantissa; 0 if none
 * is given. */
static bool read_special(sf_hlo_scan *scan, double *out, uint64_t *payload)
{
    if (sf_hlo_accept_word(scan, "inf")) {
        *out = (double)INFINITY;
        return true;
    }
    if (!sf_hlo_accept_word(scan, "nan"))
        return false;
    *out = (double)NAN;
    if (scan->at < scan->end && *scan->at == '(') {
        scan->at++;
        sf_str word = sf_hlo_word(scan);
        for (size_t i = 2; i < word.length && sf_hex_digit(word.at[i]) >= 0; i++)
            *payload = *payload << 4 | (uint64_t)sf_hex_digit(word.at[i]);
        sf_hlo_accept(scan, ')');
    }
    return true;
}

static sf_status read_real(literal *lit, double *out, uint64_t *payload)
{
    sf_hlo_scan *scan = &lit->frame->scan;
    bool is_negative = sf_hlo_accept(scan, '-');
    if (!is_negative)
        sf_hlo_accept(scan, '+');
    const char *end;
    char *slow_end;
    char c = *scan->at;
    if (c == 'n' || c == 'i') {
        if (!read_special(scan, out, payload))
            return sf_hlo_expected(scan, "a number", lit->frame->reader->diag);
    } else if (fast_number(scan->at, out, &end)) {
        scan->at = end;
    } else {
        if ((c < '0' || c > '9') && c != '.')
            return sf_hlo_expected(scan, "a number", lit->frame->reader->diag);
        *out = slow_number(scan->at, &slow_end);
        if (slow_end == scan->at || slow_end > scan->end)
            return sf_hlo_expected(scan, "a number", lit->frame->reader->diag);
        scan->at = slow_end;
    }
    if (is_negative)
        *out = -*out;
    return SF_OK;
}

/* An integer that fits the type; unsigned 64-bit numbers as their two's complement. */
static sf_status read_integer(literal *lit, int64_t *out)
{
    sf_hlo_scan *scan = &lit->frame->scan;
    sf_dtype dtype = lit->type->dtype;
    sf_hlo_space(scan);
    sf_hlo_scan before = *scan;
    if (dtype == SF_PRED && (*scan->at == 't' || *scan->at == 'f')) {
        *out = *scan->at == 't';
        if (sf_hlo_accept_word(scan, *out ? "true" : "false"))
            return SF_OK;
        return sf_hlo_expected(scan, "true or false", lit->frame->reader->diag);
    }
    bool is_negative = *scan->at == '-', fits = true;
    scan->at += is_negative;
    uint64_t value = 0;
    const char *first = scan->at;
    for (; *scan->at >= '0' && *scan->at <= '9'; scan->at++)
        fits = fits && !__builtin_mul_overflow(value, UINT64_C(10), &value) &&
               !__builtin_add_overflow(value, (uint64_t)(*scan->at - '0'), &value);
    if (scan->at == first || sf_hlo_is_word[(unsigned char)*scan->at])
        return sf_hlo_expected(&before, "an integer", lit->frame->reader->diag);
    *out = (int64_t)(is_negative ? 0 - value : value);
    if (dtype != SF_U64)
        fits = fits && (value <= INT64_MAX || (is_negative && value == (uint64_t)INT64_MAX + 1));
    if (fits && sf_wrap(dtype, *out) == *out && !(is_negative && sf_is_unsigned(dtype)))
        return SF_OK;
    sf_loc loc = sf_hlo_here(&before);
    sf_str word = sf_hlo_word(&before);
    return sf_fail(lit->frame->reader->diag, SF_EINPUT, loc, "%.*s does not fit in %s",
                   SF_STR_ARGS(word), sf_dtype_get(dtype)->hlo);
}

/* Puts the payload into the NaN that was stored last, where the type has such NaNs. */
static void store_payload(literal *lit, uint64_t payload)
{
    sf_dtype dtype = lit->number;
    flush_numbers(lit);
    uint64_t mask = (UINT64_C(1) << sf_dtype_get(dtype)->mantissa) - 1;
    uint64_t bits = sf_load_bits(dtype, lit->data, lit->stored - 1);
    sf_store_bits(dtype, lit->data, lit->stored - 1, (bits & ~mask) | (payload & mask));
    if (!isnan(sf_load_f64(dtype, lit->data, lit->stored - 1)))
        sf_store_bits(dtype, lit->data, lit->stored - 1, bits);
}

static sf_status read_number(literal *lit)
{
    uint64_t payload = 0;
    if (lit->pending == CHUNK)
        flush_numbers(lit);
    if (sf_is_float(lit->number))
        SF_TRY(read_real(lit, &lit->reals[lit->pending], &payload));
    else
        SF_TRY(read_integer(lit, &lit->integers[lit->pending]));
    lit->pending++;
    if (payload)
        store_payload(lit, payload);
    return SF_OK;
}

static sf_status read_element(literal *lit)
{
    sf_hlo_scan *scan = &lit->frame->scan;
    sf_diag *diag = lit->frame->reader->diag;
    if (!sf_is_complex(lit->type->dtype))
        return read_number(lit);
    SF_TRY(sf_hlo_expect(scan, '(', diag));
    SF_TRY(read_number(lit));
    SF_TRY(sf_hlo_expect(scan, ',', diag));
    SF_TRY(read_number(lit));
    return sf_hlo_expect(scan, ')', diag);
}

/* {...} is how a printer says that it left the elements out. */
static bool accept_elided(sf_hlo_scan *scan)
{
    sf_hlo_scan ahead = *scan;
    if (!sf_hlo_accept(&ahead, '{') || !sf_hlo_accept(&ahead, '.') || !sf_hlo_accept(&ahead, '.') ||
        !sf_hlo_accept(&ahead, '.') || !sf_hlo_accept(&ahead, '}'))
        return false;
    *scan = ahead;
    return true;
}

static sf_status bad_count(literal *lit, int dim, int64_t found)
{
    return sf_fail(lit->frame->reader->diag, SF_EINPUT, sf_hlo_here(&lit->frame->scan),
                   "expected %lld elements along dimension %d, found %s%lld",
                   (long long)lit->type->dims[dim], dim,
                   found > lit->type->dims[dim] ? "at least " : "", (long long)found);
}

static sf_status read_nested(literal *lit)
{
    sf_hlo_scan *scan = &lit->frame->scan;
    sf_diag *diag = lit->frame->reader->diag;
    const sf_type *type = lit->type;
    int64_t counts[SF_MAX_RANK] = {0};
    int depth = 0;
    SF_TRY(sf_hlo_expect(scan, '{', diag));
    while (depth >= 0) {
        if (sf_hlo_accept(scan, '}')) {
            bool is_empty = type->count == 0 && counts[depth] == 0;
            if (counts[depth] != type->dims[depth] && !is_empty)
                return bad_count(lit, depth, counts[depth]);
            depth--;
            continue;
        }
        if (counts[depth] > 0)
            SF_TRY(sf_hlo_expect(scan, ',', diag));
        if (counts[depth]++ >= type->dims[depth])
            return bad_count(lit, depth, counts[depth]);
        if (depth == type->rank - 1) {
            SF_TRY(read_element(lit));
            continue;
        }
        SF_TRY(sf_hlo_expect(scan, '{', diag));
        counts[++depth] = 0;
    }
    return SF_OK;
}

sf_status sf_hlo_read_literal(sf_hlo_frame *frame, const sf_type *type, const sf_attr **out)
{
    literal lit = {.frame = frame, .type = type, .number = sf_part_of(type->dtype)};
    if (accept_elided(&frame->scan)) {
        *out = sf_attr_dense(frame->reader->module->graph->pool, type, false, NULL);
        return SF_OK;
    }
    sf_arena *arena = &frame->reader->arena;
    sf_mark mark = sf_arena_mark(arena);
    /* An element takes at least one character: the text bounds the memory, whatever the type says. */
    int64_t left = frame->scan.end - frame->scan.at;
    int64_t room = type->count < left ? type->count : left;
    lit.data = sf_arena_array(arena, (size_t)room + 1, sf_dtype_get(type->dtype)->bytes);
    sf_status status = type->rank == 0 ? read_element(&lit) : read_nested(&lit);
    if (status == SF_OK) {
        flush_numbers(&lit);
        *out = sf_attr_dense(frame->reader->module->graph->pool, type, false, lit.data);
    }
    sf_arena_reset(arena, mark);
    return status;
}
