/* The CBLAS that the build found, one thread a call. */
#ifndef SF_RUN_GEMM_BLAS_H
#define SF_RUN_GEMM_BLAS_H

#include "run/gemm/gemm.h"

/* Whether the library can compute this product without a copy. False if the build has none. */
bool sf_blas_can(const sf_gemm *gemm);

/* Batch `batch`, rows [i, i + m), columns [j, j + n) of C, whose columns lie side by side. */
void sf_blas_run(const sf_gemm *gemm, int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n);

/* "OpenBLAS 0.3.21", or NULL. */
const char *sf_blas_name(void);

#endif
