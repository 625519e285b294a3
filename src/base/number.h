/* Numbers as text. strtod and printf follow the locale that the program around us may have set; these
 * do not.
 */
#ifndef SF_BASE_NUMBER_H
#define SF_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

static inline bool sf_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The value of the hexadecimal digit, -1 if it is none. */
static inline int sf_hex_digit(char c)
{
    if (sf_is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The double nearest to a decimal number, an infinity when it is too large. The caller has checked
 * that all of `text` has the form [-+]? [0-9]* (. [0-9]*)? ([eE] [-+]? [0-9]+)?. May allocate. */
double sf_number_double(sf_str text);

/* True, and *out set, when all of `text` is [-]? [0-9]+ and the value fits. */
bool sf_number_int(sf_str text, int64_t *out);

/* Adds the shortest decimal number that reads back as this double (17 digits where 15 and 16 do not).
 * It always has a point or an exponent: 1.0, -0.0, 0.1, 1e+22. Otherwise nan, inf or -inf. */
void sf_number_add(sf_buf *buf, double value);

#endif
