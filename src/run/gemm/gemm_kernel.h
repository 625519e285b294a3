/* The innermost part of matrix products, for one instruction set.
 *
 * A product is done in blocks that fit in the caches, as in Goto and van de Geijn, "Anatomy of
 * high-performance matrix multiplication" (2008): operands are packed into panels, mr rows of A or nr
 * columns of B wide, and a kernel multiplies one panel by another with the result in registers.
 *
 *      A panel: element (i, p) at p * mr + i         B panel: element (p, j) at p * nr + j
 *
 * A panel that already lies like this in memory, with another distance between the steps of p,
 * needs no packing. Every element of C is summed in the order of p, however the work is cut, so the
 * result does not depend on the number of threads.
 *
 * Kernels for 16-bit elements take several steps of p at once and sum in float. Their panels hold such
 * steps side by side,
 *
 *      element (i, p) at p / unit * mr * unit + i * unit + p % unit
 *
 * with a unit of A, one of B, and zeros up to a multiple of the larger of them. Only the functions that
 * pack and the tiles know more than that number of steps. */
#ifndef SF_RUN_GEMM_GEMM_KERNEL_H
#define SF_RUN_GEMM_GEMM_KERNEL_H

#include "ir/dtype.h"
#include "run/vec/isa.h"

/* Kernels are made for 1, 2, ... times the rows and columns of the smallest. Limits of all: multiples,
 * steps of a block, bytes of a tile of C, and bytes of a step of a panel. */
enum {
    SF_GEMM_MOST_ROWS = 3,
    SF_GEMM_MOST_VECTORS = 3,
    SF_GEMM_MOST_K = 512,
    SF_GEMM_MOST_TILE = 4096,
    SF_GEMM_MOST_STEP = 128,
};

/* C (rows x columns, ldc apart) = or += A panel * B panel over k; lda, ldb: the distance of steps. */
typedef void sf_gemm_tile(int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb,
                          void *c, int64_t ldc, bool accumulate);

/* Packs one panel of which `valid` rows (columns) exist, the others become zero: element (i, p) is
 * source[i * across + p * along]. `dtype` is the kernel's own, or a 16-bit float for f32. k is at
 * most SF_GEMM_MOST_K; sf_gemm_steps of it are written. */
typedef void sf_gemm_pack(void *panel, int64_t valid, int64_t k, const void *source, sf_dtype dtype,
                          int64_t across, int64_t along);

/* c[j * stride] = or += sum over p of a[p] * b[p * row + j * column] for one row of C. One of row and
 * column is 1. */
typedef void sf_gemm_row(int64_t n, int64_t k, const void *a, const void *b, int64_t row,
                         int64_t column, void *c, int64_t stride, bool accumulate);

/* For tiles that need a state of the thread: `enter` before the first of them, with memory to save
 * the old state, `leave` after the last. */
enum { SF_GEMM_STATE = 64 };
typedef void sf_gemm_enter(void *before);
typedef void sf_gemm_leave(const void *before);

typedef struct sf_gemm_type {
    sf_dtype dtype, sums; /* of the elements in panels, and of C */
    int mr, nr;           /* rows and columns of the largest tile */
    int rows, lanes;      /* of the smallest; the columns are a vector */
    int unit;       /* panels have a multiple of so many steps; 1: they may be used in place */
    int mc, kc, nc; /* block sizes: multiples of mr, unit, nr */
    sf_gemm_tile *tiles[SF_GEMM_MOST_ROWS][SF_GEMM_MOST_VECTORS];
    sf_gemm_pack *pack_a, *pack_b;
    sf_gemm_row *row;     /* NULL: by tiles */
    sf_gemm_enter *enter; /* NULL: no state */
    sf_gemm_leave *leave;
} sf_gemm_type;

/* Steps of a panel for k. */
static inline int64_t sf_gemm_steps(const sf_gemm_type *type, int64_t k)
{
    return (k + type->unit - 1) / type->unit * type->unit;
}

/* Bytes of a row (column) of a panel. */
static inline int64_t sf_gemm_row_bytes(const sf_gemm_type *type, int64_t k)
{
    return sf_gemm_steps(type, k) * sf_dtype_get(type->dtype)->bytes;
}

typedef struct sf_gemm_set {
    sf_isa isa;
    const sf_gemm_type *f32, *f64;
    const sf_gemm_type *bf16; /* NULL: the processor has none, f32 converts */
} sf_gemm_set;

/* The best set for this processor that SHEAF_VEC allows. */
const sf_gemm_set *sf_gemm_set_get(void);

/* Every set that this processor can run, the best first; NULL past the last. */
const sf_gemm_set *sf_gemm_set_nth(int index);

/* The kernels for products of such elements, as sf_gemm_can allows. f16 is converted to float:
 * AVX512-FP16 would sum in f16, and AMX-FP16 is not used yet. */
const sf_gemm_type *sf_gemm_type_for(const sf_gemm_set *set, sf_dtype a, sf_dtype b);

#endif
