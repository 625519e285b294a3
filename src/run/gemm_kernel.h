/* The innermost part of matrix products, for one instruction set.
 *
 * A product is done in blocks that fit in the caches, as in Goto and van de Geijn, "Anatomy of
 * high-performance matrix multiplication" (2008): operands are packed into panels, mr rows of A or nr
 * columns of B wide, and a kernel multiplies one panel by another with the result in registers.
 *
 *      A panel: element (i, p) at p * mr + i         B panel: element (p, j) at p * nr + j
 *
 * A panel that lies like this in memory anyway, with another distance between the steps of p, needs no
 * packing. Every element of C is summed in the order of p, however the work is cut, so the result does
 * not depend on the number of threads.
 */
#ifndef SF_RUN_GEMM_KERNEL_H
#define SF_RUN_GEMM_KERNEL_H

#include "ir/dtype.h"

/* Kernels are made for 4, 8, ... rows and 1, 2, ... vectors. */
enum { SF_GEMM_ROWS = 4, SF_GEMM_MOST_ROWS = 3, SF_GEMM_MOST_VECTORS = 3, SF_GEMM_MOST_K = 256 };

/* C (rows x columns, ldc apart) = or += A panel * B panel over k; lda, ldb: the distance of steps. */
typedef void sf_gemm_tile(int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb,
                          void *c, int64_t ldc, bool accumulate);

/* Packs one panel of which `valid` rows (columns) exist, the rest becomes zero: element (i, p) is
 * source[i * across + p * along]. `dtype` is the kernel's own, or a 16-bit float for f32. k is at most
 * SF_GEMM_MOST_K. */
typedef void sf_gemm_pack(void *panel, int64_t valid, int64_t k, const void *source, sf_dtype dtype,
                          int64_t across, int64_t along);

/* c[j * stride] = or += sum over p of a[p] * b[p * row + j * column] for one row of C. One of row and
 * column is 1. */
typedef void sf_gemm_row(int64_t n, int64_t k, const void *a, const void *b, int64_t row,
                         int64_t column, void *c, int64_t stride, bool accumulate);

typedef struct sf_gemm_type {
    sf_dtype dtype;
    int mr, nr, lanes; /* rows, columns and the width of a vector, in elements */
    int mc, kc, nc;    /* block sizes; mc and nc are multiples of mr and nr */
    sf_gemm_tile *tiles[SF_GEMM_MOST_ROWS][SF_GEMM_MOST_VECTORS];
    sf_gemm_pack *pack_a, *pack_b;
    sf_gemm_row *row;
} sf_gemm_type;

typedef struct sf_gemm_set {
    const char *name;
    sf_gemm_type f32, f64;
} sf_gemm_set;

/* The best set for this processor; SHEAF_VEC=base (or avx2, ...) in the environment overrides. */
const sf_gemm_set *sf_gemm_set_get(void);

/* Every set that this processor can run, the best first; NULL past the last. */
const sf_gemm_set *sf_gemm_set_nth(int index);

/* The kernels for products of such elements, or NULL. */
const sf_gemm_type *sf_gemm_type_for(const sf_gemm_set *set, sf_dtype dtype);

#endif
