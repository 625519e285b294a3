/* Convolutions as matrix products: C = A * B, with a row of A per place of the result (the elements
 * in its window), a column of B per output feature (the kernel), and blocks of A made as they are
 * needed. The gradients of a convolution are convolutions too, with dimensions in other places. */
#ifndef SF_RUN_CONV_CONV_H
#define SF_RUN_CONV_CONV_H

#include "base/thread_pool.h"
#include "prog/conv_geometry.h"
#include "run/gemm/gemm_epilogue.h"

typedef struct sf_conv_job {
    sf_conv g; /* of types that sf_gemm_can allows */
    const void *lhs, *rhs;
    void *out;
    const sf_epilogue
        *epilogue; /* or NULL; the result then has 2 features or more, which lie side by
                                    side, no groups, and no gaps */
    void *scratch; /* sf_conv_scratch bytes, 64-byte aligned */
} sf_conv_job;

int64_t sf_conv_scratch(const sf_conv_job *conv, int threads);

/* The result is the same for any number of threads. */
void sf_conv_run(const sf_conv_job *conv, sf_threads *threads);

#endif
