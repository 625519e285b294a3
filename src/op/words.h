/* Elements unpacked to 64-bit words, the form in which the heavy kernels (dot, convolution, reduce)
 * loop: a double where the result is a float, else the integer modulo 2^64. Sums in words are rounded
 * or wrapped once, when they are stored. */
#ifndef SF_OP_WORDS_H
#define SF_OP_WORDS_H

#include "ir/tensor.h"

typedef union sf_word {
    double real;
    uint64_t integer;
} sf_word;

/* All elements of the tensor, row-major. `real` says which member is filled. */
sf_word *sf_words_load(sf_arena *arena, const sf_tensor *tensor, bool real);
void sf_words_store(sf_tensor *tensor, bool real, const sf_word *words);

/* A copy whose dimension i is dimension order[i] of `words`, an array of shape dims[rank]. */
sf_word *sf_words_transpose(sf_arena *arena, const sf_word *words, int rank, const int64_t *dims,
                            const int *order);

/* sum[i] += factor * x[i] for i < count. Of a float type, products and sums are rounded to it; SF_F64
 * is exact enough to be rounded once, when the sum is stored. */
void sf_words_add_scaled(sf_dtype dtype, int64_t count, sf_word factor, const sf_word *x,
                         sf_word *sum);

#endif
