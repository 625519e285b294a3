/* Finished sums into elements of any type that products may have. */
#ifndef SF_RUN_GEMM_GEMM_STORE_H
#define SF_RUN_GEMM_GEMM_STORE_H

#include "ir/dtype.h"

/* to[i * stride] = sums[i], or += with `accumulate`, rounded once. Sums are double for f64, else
 * float. */
void sf_sums_store(void *to, sf_dtype dtype, int64_t stride, const void *sums, int64_t count,
                   bool accumulate);

#endif
