/* Products in blocks over threads: common to sf_gemm and sf_conv.
 *
 * The two pack functions define the operands: elements of a matrix, or of the windows of a
 * convolution. The batches and the blocks of C are divided among the threads; each packs its own
 * operands. */
#ifndef SF_RUN_GEMM_GEMM_BLOCK_H
#define SF_RUN_GEMM_GEMM_BLOCK_H

#include "base/gemm_split.h"
#include "base/thread_pool.h"
#include "run/gemm/gemm_epilogue.h"
#include "run/gemm/gemm_kernel.h"

/* Packs panels for rows of A (columns of B) [first, first + count) and steps [p, p + k): each panel
 * is mr (nr) wide and sf_gemm_steps of k long, one after the other. `first` is a multiple of the width. */
typedef void sf_blocks_pack(const void *context, int64_t batch, int64_t first, int64_t count,
                            int64_t p, int64_t k, void *panels);

/* Takes finished sums of rows [i, i + rows) and columns [j, j + columns), `ld` apart. */
typedef void sf_blocks_store(const void *context, int64_t batch, int64_t i, int64_t rows, int64_t j,
                             int64_t columns, const void *sums, int64_t ld);

/* Elements that need no packing: a[i + p * a_step], b[p * b_step + j], per batch. NULL: pack. */
typedef struct sf_blocks {
    const sf_gemm_type *type;
    int64_t batches, m, n, k;
    const void *context;
    sf_blocks_pack *pack_a, *pack_b;
    const void *a, *b;
    int64_t a_batch, a_step, b_batch, b_step;
    /* `direct`: C has the kernels' type and its columns side by side; else `store` gets the sums. */
    bool direct;
    void *c;
    int64_t c_batch, c_row;
    bool accumulate;
    sf_blocks_store *store;
    const sf_epilogue *epilogue; /* or NULL; C's rows are then contiguous */
    void *scratch;               /* sf_blocks_scratch bytes, 64-byte aligned */
} sf_blocks;

int64_t sf_blocks_scratch(const sf_blocks *blocks, int threads);
void sf_blocks_run(const sf_blocks *blocks, sf_threads *threads);

#endif
