#include "base/number.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* mantissa * 10^exponent, unless digits were dropped. */
struct decimal {
    sf_str digits; /* with the point, without sign and exponent */
    uint64_t mantissa;
    int64_t exponent;
    bool negative, dropped;
};

/* A uint64_t holds any number of 19 digits. */
enum { MOST_DIGITS = 19 };

static int64_t read_exponent(const char *at, const char *end)
{
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    int64_t exponent = 0;
    for (; at < end; at++)
        if (exponent < INT64_C(1) << 50) /* more than a text has digits to make up for it */
            exponent = exponent * 10 + (*at - '0');
    return negative ? -exponent : exponent;
}

static struct decimal read_decimal(sf_str text)
{
    const char *at = text.at, *end = text.at + text.length, *point = NULL;
    struct decimal d = {.negative = at < end && *at == '-'};
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    d.digits.at = at;
    for (int significant = 0; at < end && (sf_is_digit(*at) || *at == '.'); at++) {
        if (*at == '.') {
            point = at;
        } else if (significant == MOST_DIGITS) {
            d.dropped = true;
        } else {
            d.mantissa = d.mantissa * 10 + (unsigned)(*at - '0');
            significant += d.mantissa != 0;
        }
    }
    d.digits.length = (size_t)(at - d.digits.at);
    if (at < end)
        d.exponent = read_exponent(at + 1, end);
    if (point)
        d.exponent -= at - point - 1;
    return d;
}

/* strtod on digits without a point: then there is no question which character is the point. */
static double slow_double(const struct decimal *d)
{
    char small[128];
    char *text = d->digits.length + 32 <= sizeof small ? small : sf_alloc(d->digits.length + 32);
    size_t used = 0;
    for (size_t i = 0; i < d->digits.length; i++)
        if (d->digits.at[i] != '.')
            text[used++] = d->digits.at[i];
    snprintf(text + used, 32, "e%" PRId64, d->exponent);
    double value = strtod(text, NULL);
    if (text != small)
        sf_free(text);
    return value;
}

double sf_number_double(sf_str text)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    struct decimal d = read_decimal(text);
    double value;
    if (d.mantissa == 0)
        value = 0;
    else if (FLT_EVAL_METHOD == 0 && !d.dropped && d.mantissa <= UINT64_C(1) << 53 &&
             d.exponent >= -22 && d.exponent <= 22)
        /* Both are exact doubles, so the one operation rounds right (Clinger 1990). */
        value = d.exponent < 0 ? (double)d.mantissa / powers[-d.exponent]
                               : (double)d.mantissa * powers[d.exponent];
    else
        value = slow_double(&d);
    return d.negative ? -value : value;
}

bool sf_number_int(sf_str text, int64_t *out)
{
    const char *at = text.at, *end = text.at + text.length;
    bool negative = text.length > 0 && *at == '-';
    at += negative;
    if (at == end)
        return false;
    uint64_t magnitude = 0;
    for (; at < end; at++) {
        if (!sf_is_digit(*at) || __builtin_mul_overflow(magnitude, 10u, &magnitude) ||
            __builtin_add_overflow(magnitude, (unsigned)(*at - '0'), &magnitude))
            return false;
    }
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    /* Negated unsigned, since -2^63 has no positive counterpart. */
    *out = (int64_t)(negative ? -magnitude : magnitude);
    return true;
}

/* The digits and the power of ten of the first one. The decimal point of printf may be any
 * character or several, so it is everything between the first digit and the next. */
static int split_digits(const char *text, char *digits)
{
    size_t count = 0;
    const char *at = text;
    for (; *at && *at != 'e'; at++)
        if (sf_is_digit(*at))
            digits[count++] = *at;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    digits[count] = 0;
    return *at ? atoi(at + 1) : 0;
}

static void add_plain(sf_buf *buf, const char *digits, int exponent)
{
    int count = (int)strlen(digits);
    if (exponent < 0) {
        sf_buf_puts(buf, "0.");
        for (int i = -1; i > exponent; i--)
            sf_buf_putc(buf, '0');
        sf_buf_puts(buf, digits);
        return;
    }
    for (int i = 0; i <= exponent || i < count; i++) {
        if (i == exponent + 1)
            sf_buf_putc(buf, '.');
        sf_buf_putc(buf, i < count ? digits[i] : '0');
    }
    if (count <= exponent + 1)
        sf_buf_puts(buf, ".0");
}

static void add_scientific(sf_buf *buf, const char *digits, int exponent)
{
    sf_buf_putc(buf, digits[0]);
    if (digits[1]) {
        sf_buf_putc(buf, '.');
        sf_buf_puts(buf, digits + 1);
    }
    sf_buf_printf(buf, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

void sf_number_add(sf_buf *buf, double value)
{
    if (signbit(value) && !isnan(value))
        sf_buf_putc(buf, '-');
    if (!isfinite(value)) {
        sf_buf_puts(buf, isnan(value) ? "nan" : "inf");
        return;
    }
    double magnitude = fabs(value);
    char text[64], digits[64];
    /* 15 digits are in every normal double, so one with fewer shows as zeros at the end. */
    for (int precision = magnitude < DBL_MIN ? 0 : 14; precision <= 16; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, magnitude);
        /* Both follow the locale, so they agree. Equality of bits, since zero is not negative. */
        double back = strtod(text, NULL);
        if (memcmp(&back, &magnitude, sizeof back) == 0)
            break;
    }
    int exponent = split_digits(text, digits);
    if (exponent >= -5 && exponent < 16)
        add_plain(buf, digits, exponent);
    else
        add_scientific(buf, digits, exponent);
}
