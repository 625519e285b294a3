/* The dimensions of a step as products of digits that they have in common.
 *
 * An index in a mixed radix has digits, major to minor, and the size of the dimension is the product of
 * theirs. Two dimensions are tied when ops need them to be equal; a reshape ties the product of some
 * dimensions to that of others. Tying cuts digits until both sides are made of the same ones. So each
 * digit can be given another size by itself, and all dimensions of the step still fit together.
 *
 *     [512, 1024] -> [4, 128, 1024] -> [4, 128, 16, 64]      512 = a b, 4 = a, 128 = b, 1024 = c d
 */
#ifndef SF_PLAN_SHRINK_SHARED_DIGITS_H
#define SF_PLAN_SHRINK_SHARED_DIGITS_H

#include "ir/graph.h"

typedef struct sf_digit_class {
    int64_t size;
    uint32_t same;         /* another one that it is the same as, or itself */
    uint32_t major, minor; /* the digits into which it was cut, or SF_NONE */
    bool fixed;            /* its size stays */
} sf_digit_class;

typedef struct sf_digits {
    sf_arena *arena;
    size_t count, capacity;
    sf_digit_class *at;
} sf_digits;

/* A new one. */
uint32_t sf_digits_add(sf_digits *digits, int64_t size, bool fixed);

/* Ties two products, whose sizes are the same, digit by digit. Where their digits do not meet, those stay
 * as they are. */
void sf_digits_tie(sf_digits *digits, int na, const uint32_t *a, int nb, const uint32_t *b);

/* All that it is made of keeps its size. */
void sf_digits_fix(sf_digits *digits, uint32_t digit);

/* The reduced size: the smallest of 8 and more that has the same common divisor with `ranks`, so
 * that sizes that split still split, and others still do not. */
int64_t sf_digits_smaller(int64_t size, int64_t ranks);

/* The reduced size of a digit: the product of the reduced sizes of its digits. */
int64_t sf_digits_size(const sf_digits *digits, uint32_t digit, int64_t ranks);

/* The reduced size of the minor digits whose sizes multiply to `unit`. The digit must be cut
 * there. */
int64_t sf_digits_unit(const sf_digits *digits, uint32_t digit, int64_t unit, int64_t ranks);

#endif
