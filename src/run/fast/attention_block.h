/* Attention (op/attention.h) block by block: common to its forward and its backward pass.
 *
 * A block of scores is `rows` places of queries by `columns` places of keys, of one head of one
 * example, which is a pair. It is in scratch memory of a thread, as floats; products are those of
 * run/gemm. The forward pass saves for each row the logarithm of the sum of its exponentials, so
 * that exp(score - end) is a weight. */
#ifndef SF_RUN_FAST_ATTENTION_BLOCK_H
#define SF_RUN_FAST_ATTENTION_BLOCK_H

#include "run/fast/fast_kernels.h"
#include "run/gemm/gemm.h"
#include "run/vec/vec.h"

enum { SF_ATTEND_ROWS = 128 }; /* of a block, at most */

typedef struct sf_attend {
    const sf_vec *vec;
    int64_t pairs, heads, queries, keys, depth;
    int64_t rows, columns; /* of a block; no more than there are */
    bool causal;
    int64_t offset; /* of places that are seen */
    float scale;
    sf_dtype dtype;
    int64_t width; /* bytes of an element */
} sf_attend;

/* With blocks of at most so many rows and columns, multiples of 16. */
sf_attend sf_attend_of(const sf_op *op, int64_t rows, int64_t columns);

/* Places [first, ..) of a pair of a tensor [batch, place, head, depth], as a matrix of places by depth. */
sf_matrix sf_attend_places(const sf_attend *a, const sf_tensor *tensor, int64_t pair,
                           int64_t first);
sf_matrix sf_attend_transposed(sf_matrix x);

/* to (m x n floats, `row` apart) = x (m x k) y (k x n), or added to it. */
typedef struct sf_attend_product {
    int64_t m, n, k;
    sf_matrix x, y;
    float *to;
    int64_t row;
    bool adds;
} sf_attend_product;

/* `scratch`: sf_attend_room bytes, at 64; enough for all products of at most rows, columns and depth, in any order. */
int64_t sf_attend_room(const sf_attend *a);
void sf_attend_multiply(const sf_attend *a, const sf_attend_product *p, void *scratch);

/* A block of floats as a matrix of the type of the op, which `narrow` is for; the floats themselves where that is float. */
sf_matrix sf_attend_narrow(const sf_attend *a, float *block, int64_t rows, int64_t columns,
                           void *narrow);

/* Rows of `count` floats, times a factor, to elements of the type of the op. */
void sf_attend_store(const sf_attend *a, const sf_matrix *to, int64_t at, float *row, float factor);

/* How many of the columns from `at` on the query at `place` sees, of `count`. */
int64_t sf_attend_seen(const sf_attend *a, int64_t place, int64_t at, int64_t count);

/* Bytes up to the next line of a cache. */
int64_t sf_attend_line(int64_t bytes);

#endif
