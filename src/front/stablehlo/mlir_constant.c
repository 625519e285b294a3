/* Dense literals: `dense<[[1.0, 2.0]]>`, `dense<0>`, `dense<(1.0,2.0)>`, `dense<"0x0000803F">`.
 *
 * The type comes after the literal but determines how to read it, so the reader looks for the end
 * of the literal first. Memory is allocated for the numbers in the text, never for the size of the
 * type: a splat of a billion elements is one number. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "front/stablehlo/mlir_reader.h"

/* A literal that is being read into its elements. */
struct literal {
    sf_mlir *r;
    const sf_type *type;
    sf_dtype number; /* the type of the numbers: the elements, or the parts of complex ones */
    const sf_dtype_info *info; /* of it */
    void *data;
    int64_t count, room; /* numbers read, and their capacity */
    uint64_t few[8];     /* most literals are a single number: these need no memory */
};

/* Room for that many elements. */
static void make_room_for_elements(struct literal *l, int64_t count)
{
    l->room = count * sf_parts_of(l->type->dtype);
    size_t bytes = (size_t)l->room * l->info->bytes;
    l->data = bytes <= sizeof l->few ? l->few : sf_alloc(bytes);
}

static void free_room(struct literal *l)
{
    if (l->data != l->few)
        sf_free(l->data);
}

/* The exact powers of ten of a double. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

struct decimal {
    const char *end;
    bool negative, exact; /* exact: mantissa * 10^exponent is the number */
    uint64_t mantissa;
    int exponent;
};

/* Splits a decimal number; false where there is none. */
static bool split_decimal(const char *at, struct decimal *out)
{
    *out = (struct decimal){.negative = *at == '-', .exact = true};
    at += *at == '-' || *at == '+';
    const char *first = at;
    int point = 0;
    bool fraction = false;
    for (;; at++) {
        if (*at == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (!sf_is_digit(*at))
            break;
        out->exact &= out->mantissa < (uint64_t)1 << 53;
        out->mantissa = out->exact ? out->mantissa * 10 + (uint64_t)(*at - '0') : 0;
        point += fraction && point < 1000;
    }
    if (at - first <= fraction)
        return false;
    int exponent = 0;
    if (*at == 'e' || *at == 'E') {
        const char *digits = at + 1;
        bool negative = *digits == '-';
        digits += *digits == '-' || *digits == '+';
        if (!sf_is_digit(*digits))
            return false;
        for (; sf_is_digit(*digits); digits++)
            exponent = exponent < 10000 ? exponent * 10 + (*digits - '0') : exponent;
        exponent = negative ? -exponent : exponent;
        at = digits;
    }
    out->end = at;
    out->exponent = exponent - point;
    return true;
}

/* The C library's conversion, whatever the locale of the program. */
static double convert_slowly(const char *at, bool single)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return single ? (double)strtof(at, NULL) : strtod(at, NULL);
    double value = single ? (double)strtof_l(at, NULL, c_locale) : strtod_l(at, NULL, c_locale);
    freelocale(c_locale);
    return value;
}

/* Rounds correctly. Mantissa and power are exact as doubles in all but odd cases, so one operation
 * rounds once (Clinger 1990). For f32 the double is rounded a second time, which is only wrong when
 * it lies exactly between two floats. */
static double convert_decimal(const char *at, const struct decimal *decimal, bool single)
{
    int exponent = decimal->exponent < 0 ? -decimal->exponent : decimal->exponent;
    if (!decimal->exact || decimal->mantissa > (uint64_t)1 << 53 || exponent > 22)
        return convert_slowly(at, single);
    double value = (double)decimal->mantissa;
    value = decimal->exponent < 0 ? value / powers[exponent] : value * powers[exponent];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (single && (bits & 0x1fffffff) == 0x10000000)
        return convert_slowly(at, single);
    return decimal->negative ? -value : value;
}

static sf_status too_large(struct literal *l)
{
    return SF_MLIR_FAIL(l->r, SF_EINPUT, sf_mlir_here(l->r), "the number does not fit in %s",
                        l->info->name);
}

static sf_status parse_bits(struct literal *l)
{
    int64_t bits;
    sf_scan start = l->r->scan;
    if (!sf_scan_int(&l->r->scan, &bits))
        return sf_mlir_expected(l->r, "a hexadecimal number");
    if (l->info->bits < 64 && (uint64_t)bits >> l->info->bits) {
        l->r->scan = start;
        return too_large(l);
    }
    sf_store_bits(l->number, l->data, l->count++, (uint64_t)bits);
    return SF_OK;
}

static sf_status parse_float(struct literal *l)
{
    const char *at = l->r->scan.at;
    if (at[0] == '0' && at[1] == 'x')
        return parse_bits(l);
    struct decimal decimal;
    if (!split_decimal(at, &decimal))
        return sf_mlir_expected(l->r, "a number");
    double value = convert_decimal(at, &decimal, l->number == SF_F32);
    sf_store_f64(l->number, l->data, l->count++, value);
    l->r->scan.at = decimal.end;
    return SF_OK;
}

static sf_status parse_integer(struct literal *l)
{
    sf_scan *scan = &l->r->scan;
    if (l->info->class == SF_BOOLEAN) {
        bool yes = sf_scan_word(scan, "true");
        if (yes || sf_scan_word(scan, "false")) {
            sf_store_i64(l->type->dtype, l->data, l->count++, yes);
            return SF_OK;
        }
    }
    sf_scan start = *scan;
    bool negative = *scan->at == '-';
    int64_t value;
    if (!sf_scan_int(scan, &value))
        return sf_mlir_expected(l->r, l->info->class == SF_BOOLEAN ? "true or false"
                                                                   : "an integer of 64 bits");
    /* A type without a sign in its name takes the numbers of both readings: 255 is -1 of i8. */
    uint64_t magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value;
    int bits = l->info->bits - negative;
    bool fits = negative ? magnitude <= (uint64_t)1 << bits : bits == 64 || !(magnitude >> bits);
    if (!fits || (negative && l->info->class == SF_UNSIGNED && magnitude)) {
        *scan = start;
        return too_large(l);
    }
    sf_store_i64(l->type->dtype, l->data, l->count++, value);
    return SF_OK;
}

static sf_status parse_pair_of_parts(struct literal *l)
{
    SF_TRY(sf_mlir_take(l->r, '('));
    sf_scan_skip(&l->r->scan);
    SF_TRY(parse_float(l));
    SF_TRY(sf_mlir_take(l->r, ','));
    sf_scan_skip(&l->r->scan);
    SF_TRY(parse_float(l));
    return sf_mlir_take(l->r, ')');
}

static sf_status parse_element(struct literal *l)
{
    sf_scan_skip(&l->r->scan);
    if (l->count == l->room)
        return SF_MLIR_FAIL(l->r, SF_EINPUT, sf_mlir_here(l->r),
                            "the literal has more elements than its type");
    if (sf_is_complex(l->type->dtype))
        return parse_pair_of_parts(l);
    return l->info->class == SF_FLOAT ? parse_float(l) : parse_integer(l);
}

/* The list for dimension `dim`; the depth is at most the rank. */
static sf_status parse_list(struct literal *l, int dim)
{
    sf_loc loc = sf_mlir_here(l->r);
    int64_t size = 0;
    SF_TRY(sf_mlir_take(l->r, '['));
    if (!sf_scan_is(&l->r->scan, ']')) {
        do {
            SF_TRY(dim + 1 < l->type->rank ? parse_list(l, dim + 1) : parse_element(l));
            size++;
        } while (sf_scan_take(&l->r->scan, ','));
    }
    SF_TRY(sf_mlir_take(l->r, ']'));
    if (size == l->type->dims[dim])
        return SF_OK;
    char text[SF_TYPE_TEXT];
    return SF_MLIR_FAIL(l->r, SF_EINPUT, loc, "%lld elements in a list for dimension %d of %s",
                        (long long)size, dim, sf_type_text(l->type, text));
}

static int hex_value(char c)
{
    if (sf_is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The bytes of a hexadecimal string, two digits each. */
static unsigned byte_at(sf_str digits, size_t index)
{
    return (unsigned)(hex_value(digits.at[2 * index]) << 4 | hex_value(digits.at[2 * index + 1]));
}

/* Booleans have a bit each, or a byte each in newer text; one byte alone is a splat of either kind. */
static bool store_booleans(struct literal *l, sf_str digits)
{
    size_t count = (size_t)l->type->count, nbytes = digits.length / 2;
    bool packed = nbytes == count / 8 + (count % 8 > 0) && nbytes != count;
    if (!packed && nbytes != count && nbytes != 1)
        return false;
    bool splat = nbytes == 1 && (!packed || byte_at(digits, 0) == 0xff);
    make_room_for_elements(l, splat ? 1 : (int64_t)count);
    for (size_t i = 0; i < (size_t)l->room; i++) {
        unsigned byte = byte_at(digits, packed ? i / 8 : i);
        sf_store_i64(l->type->dtype, l->data, l->count++, packed ? byte >> i % 8 & 1 : byte != 0);
    }
    return true;
}

static bool store_bytes(struct literal *l, sf_str digits)
{
    size_t width = l->info->bytes, nbytes = digits.length / 2;
    size_t element = width * (size_t)sf_parts_of(l->type->dtype), count = nbytes / element;
    if (nbytes % element || (count != (size_t)l->type->count && count != 1))
        return false;
    make_room_for_elements(l, (int64_t)count);
    for (size_t i = 0; i < (size_t)l->room; i++) {
        uint64_t bits = 0;
        for (size_t b = 0; b < width; b++)
            bits |= (uint64_t)byte_at(digits, i * width + b) << 8 * b;
        if (l->info->bits < 64)
            bits &= ((uint64_t)1 << l->info->bits) - 1;
        sf_store_bits(l->number, l->data, l->count++, bits);
    }
    return true;
}

static bool is_hex(sf_str text)
{
    for (size_t i = 2; i < text.length; i++)
        if (hex_value(text.at[i]) < 0)
            return false;
    return sf_str_starts(text, "0x") && text.length % 2 == 0;
}

static sf_status parse_hex(struct literal *l, sf_str text, sf_loc loc)
{
    if (!is_hex(text))
        return SF_MLIR_FAIL(l->r, SF_EINPUT, loc,
                            "the string of a literal is \"0x\" and an even number of hexadecimal "
                            "digits");
    sf_str digits = {text.at + 2, text.length - 2};
    bool one_bit = l->info->class == SF_BOOLEAN;
    if (digits.length > 0 && (one_bit ? store_booleans : store_bytes)(l, digits))
        return SF_OK;
    char type[SF_TYPE_TEXT];
    return SF_MLIR_FAIL(l->r, SF_EINPUT, loc, "a %s is not made of %zu byte%s of data",
                        sf_type_text(l->type, type), digits.length / 2,
                        sf_plural(digits.length / 2));
}

/* From the '<' to after the '>', lines counted. */
static sf_status skip_literal(sf_mlir *r, sf_scan *body)
{
    SF_TRY(sf_mlir_take(r, '<'));
    sf_scan_skip(&r->scan);
    *body = r->scan;
    sf_str string;
    if (*r->scan.at == '"') {
        if (!sf_scan_quoted(&r->scan, &string))
            return sf_mlir_expected(r, "a string that ends on its line");
        return sf_mlir_take(r, '>');
    }
    const char *end = memchr(r->scan.at, '>', (size_t)(r->scan.end - r->scan.at));
    if (!end)
        return SF_MLIR_FAIL(r, SF_EINPUT, sf_mlir_here(r), "the literal has no end");
    const char *at = r->scan.at;
    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        r->scan.line++;
        r->scan.line_start = ++at;
    }
    r->scan.at = end + 1;
    return SF_OK;
}

static sf_status parse_dense_body(struct literal *l, const char *end)
{
    sf_mlir *r = l->r;
    sf_str digits;
    if (*r->scan.at == '"') {
        sf_loc loc = sf_mlir_here(r);
        sf_scan_quoted(&r->scan, &digits);
        return parse_hex(l, digits, loc);
    }
    int64_t length = end - r->scan.at;
    bool list = *r->scan.at == '[';
    make_room_for_elements(l, !list ? 1 : l->type->count < length ? l->type->count : length);
    if (list && l->type->rank == 0)
        return SF_MLIR_FAIL(r, SF_EINPUT, sf_mlir_here(r), "a list for a type without dimensions");
    if (list)
        return parse_list(l, 0);
    if (sf_scan_is(&r->scan, '>') && l->type->count == 0)
        return SF_OK;
    return parse_element(l);
}

sf_status sf_mlir_dense(sf_mlir *r, const sf_attr **out)
{
    sf_loc loc = sf_mlir_here(r);
    if (sf_scan_word(&r->scan, "dense_resource<__elided__>")) {
        const sf_type *type;
        SF_TRY(sf_mlir_take(r, ':'));
        SF_TRY(sf_mlir_tensor_type(r, &type));
        *out = sf_attr_dense(r->module->graph->pool, type, false, NULL);
        return SF_OK;
    }
    if (sf_scan_word(&r->scan, "dense_resource")) {
        SF_MLIR_FAIL(r, SF_EUNSUPPORTED, loc, "constants in resources are not supported");
        sf_hint(r->diag, "export with the constants in the text, or pass them as arguments");
        return SF_EUNSUPPORTED;
    }
    if (!sf_scan_word(&r->scan, "dense"))
        return sf_mlir_expected(r, "dense<...>");
    sf_scan body, after;
    SF_TRY(skip_literal(r, &body));
    struct literal l = {.r = r};
    SF_TRY(sf_mlir_take(r, ':'));
    SF_TRY(sf_mlir_tensor_type(r, &l.type));
    l.number = sf_part_of(l.type->dtype);
    l.info = sf_dtype_get(l.number);
    after = r->scan;
    r->scan = body;
    l.data = l.few;
    sf_status status = parse_dense_body(&l, after.at);
    if (status == SF_OK)
        status = sf_mlir_take(r, '>');
    if (status == SF_OK) {
        bool splat = l.count == sf_parts_of(l.type->dtype) && l.type->count > 1;
        *out = sf_attr_dense(r->pool, l.type, splat, l.data);
        r->scan = after;
    }
    free_room(&l);
    return status;
}

sf_status sf_mlir_real(sf_mlir *r, const sf_attr **out)
{
    struct literal l = {.r = r, .type = sf_type_scalar(r->pool, SF_F32), .number = SF_F32};
    l.info = sf_dtype_get(l.number);
    make_room_for_elements(&l, 1);
    SF_TRY(parse_element(&l));
    *out = sf_attr_dense(r->pool, l.type, false, l.data);
    return SF_OK;
}
