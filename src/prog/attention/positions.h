/* Tensors of integers that count: a + b i + c j + ... of their own indices. Positions are such, and those of a rank that has some of
 * them, which are cut out of all or counted from where it begins. */
#ifndef SF_PROG_POSITIONS_H
#define SF_PROG_POSITIONS_H

#include "prog/attention/algebra.h"

typedef struct positions {
    int64_t first;
    int64_t steps[SF_MAX_RANK]; /* by dimension; 0 where it has one element */
} positions;

/* False where the value is no such tensor. */
bool positions_read(const sf_scene *scene, sf_value value, positions *out);

/* The one dimension along which it goes up by 1, and along all others by 0; -1: it does otherwise. */
int positions_dim(const positions *p);

#endif
