/* The sets of kernels that the build has; which a processor can run, gemm_kernel.c decides. */
#ifndef SF_RUN_GEMM_SETS_H
#define SF_RUN_GEMM_SETS_H

#include "run/gemm_kernel.h"

#if defined(__x86_64__)
extern const sf_gemm_set sf_gemm_avx512, sf_gemm_avx2;
#endif
extern const sf_gemm_set sf_gemm_base;

#endif
