/* Arithmetic on sizes that says when it overflows. */
#ifndef SF_BASE_CHECKED_H
#define SF_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

/* False, and *out untouched, when the result does not fit. */
static inline bool sf_mul(int64_t a, int64_t b, int64_t *out)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

static inline bool sf_add(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

/* Division that rounds towards minus infinity, and towards plus infinity; b > 0. */
static inline int64_t sf_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static inline int64_t sf_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* The greatest common divisor; that of 0 and b is b. */
static inline int64_t sf_gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
