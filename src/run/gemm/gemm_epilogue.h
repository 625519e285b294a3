/* Epilogues of a matrix product, which run while its rows are in cache.
 *
 * The kernel that computes C (rows x columns, rows contiguous in memory, the rows of all batches
 * counted through) passes every block of it once, as soon as the block is complete, in the thread
 * that completed it. The kernel chooses the blocks. */
#ifndef SF_RUN_GEMM_GEMM_EPILOGUE_H
#define SF_RUN_GEMM_GEMM_EPILOGUE_H

#include <stdbool.h>

#include "base/thread_pool.h"

typedef struct sf_epilogue {
    void (*run)(const void *context, int part, int64_t row, int64_t rows, int64_t column,
                int64_t columns);
    const void *context;
    bool whole_rows; /* blocks must have all columns */
    int64_t first;   /* number of C's first row */
    int64_t work;    /* on an element, in multiplications, for the cut into threads */
} sf_epilogue;

/* Hands over rows [row, row + rows) of C. Nothing without an epilogue. */
static inline void sf_epilogue_run(const sf_epilogue *epilogue, int part, int64_t row, int64_t rows,
                                   int64_t column, int64_t columns)
{
    if (epilogue)
        epilogue->run(epilogue->context, part, epilogue->first + row, rows, column, columns);
}

/* Hands over everything, in threads: for products whose rows are computed in another order. */
void sf_epilogue_run_all(const sf_epilogue *epilogue, int64_t rows, int64_t columns,
                         sf_threads *threads);

#endif
