/* Elements unpacked to 64-bit words, the form in which the heavy kernels (dot, convolution, reduce)
 * loop: a double where the result is a float, else the integer modulo 2^64. An element is one word, or of
 * complex numbers two, the real part first: sf_parts_of says how many. Sums in words are rounded or wrapped
 * once, when they are stored. */
#ifndef SF_OP_WORDS_H
#define SF_OP_WORDS_H

#include "ir/tensor.h"

typedef union sf_word {
    double real;
    uint64_t integer;
} sf_word;

/* All elements of the tensor, row-major, for the arithmetic of the type `as`. */
sf_word *sf_words_load(sf_arena *arena, const sf_tensor *tensor, sf_dtype as);

/* Words for the arithmetic of the tensor's type. */
void sf_words_store(sf_tensor *tensor, const sf_word *words);

/* A copy whose dimension i is dimension order[i] of `words`, an array of shape dims[rank] with `parts` words
 * an element. */
sf_word *sf_words_transpose(sf_arena *arena, const sf_word *words, int parts, int rank,
                            const int64_t *dims, const int *order);

/* product = a * b: complex numbers, rounded to the type of their parts as a processor does that adds to a
 * product before it rounds. `product` may be `a` or `b`. */
void sf_words_multiply(sf_dtype dtype, const sf_word *a, const sf_word *b, sf_word *product);

/* sum[i] += factor * x[i] for i < count. Of a float type, products and sums are rounded to it; SF_F64
 * is exact enough to be rounded once, when the sum is stored. `factor` is one element. */
void sf_words_add_scaled(sf_dtype dtype, int64_t count, const sf_word *factor, const sf_word *x,
                         sf_word *sum);

#endif
