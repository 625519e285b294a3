/* Matrix products: C = A * B, batched, strided, in threads.
 *
 * It uses blocked kernels of our own for several instruction sets, whose results are the same for
 * any number of threads; or, if the build is configured so, a CBLAS (one thread a call, cut into
 * blocks over our own threads, so that nothing is oversubscribed and the result depends on the
 * number of threads alone).
 *
 * 16-bit floats are multiplied with float sums. Where the processor has instructions for bf16 that are
 * faster than floats (AMX, AVX512-BF16 on AMD's, BFMMLA), two bf16 operands are multiplied by these: then
 * the result depends on the instruction set in its last bits, and operands and sums below 2^-126 in
 * magnitude (subnormal numbers) count as zero. Everything else of 16 bits, f16 always, is converted to
 * float in packing, exactly. */
#ifndef SF_RUN_GEMM_GEMM_H
#define SF_RUN_GEMM_GEMM_H

#include "base/arena.h"
#include "base/thread_pool.h"
#include "ir/dtype.h"
#include "run/gemm/gemm_epilogue.h"

/* A matrix per batch: element (i, j) of batch b is at data + b * batch + i * row + j * column, in
 * elements. One of row and column is usually 1; 0 repeats. */
typedef struct sf_matrix {
    void *data;
    sf_dtype dtype;
    int64_t batch, row, column;
} sf_matrix;

/* C (m x n) = A (m x k) * B (k x n) for `batches` batches; C's column is 1, or its row is.
 * `scratch` is for packing and conversion: sf_gemm_scratch bytes, 64-byte aligned (may be NULL when
 * that is 0). `accumulate`: added to C. Types: f32, f64, bf16, f16, with C of the same type or f32;
 * other combinations are not supported. */
typedef struct sf_gemm {
    int64_t batches, m, n, k;
    sf_matrix a, b, c;
    bool accumulate;
    const sf_epilogue *epilogue; /* or NULL; C then has 2 columns or more, and no gaps */
    void *scratch;
} sf_gemm;

bool sf_gemm_can(sf_dtype a, sf_dtype b, sf_dtype c);
int64_t sf_gemm_scratch(const sf_gemm *gemm, int threads);

/* The result of sf_gemm_scratch for one thread and our own kernels: enough for products of the same
 * types with no more rows, columns and steps, in any library. */
int64_t sf_gemm_room(const sf_gemm *gemm);

/* `threads` may be NULL: the caller, who may be inside of work of threads, does it alone. */
void sf_gemm_run(const sf_gemm *gemm, sf_threads *threads);

/* "OpenBLAS 0.3.21", "BLIS 0.9.0", "own, amx" for `sheaf version`. */
const char *sf_gemm_library(void);

#endif
