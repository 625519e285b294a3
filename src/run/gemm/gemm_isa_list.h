/* The kernels that the build has; which a processor can run, gemm_kernel.c decides. */
#ifndef SF_RUN_GEMM_GEMM_ISA_LIST_H
#define SF_RUN_GEMM_GEMM_ISA_LIST_H

#include "run/gemm/gemm_kernel.h"

extern const sf_gemm_type sf_gemm_base_f32, sf_gemm_base_f64;
#if defined(__x86_64__)
extern const sf_gemm_type sf_gemm_avx2_f32, sf_gemm_avx2_f64;
extern const sf_gemm_type sf_gemm_avx512_f32, sf_gemm_avx512_f64, sf_gemm_avx512_bf16;
extern const sf_gemm_type sf_gemm_amx_bf16;
#elif defined(__aarch64__)
extern const sf_gemm_type sf_gemm_neon_bf16;
extern const sf_gemm_type sf_gemm_sve256_f32, sf_gemm_sve256_f64;
extern const sf_gemm_type sf_gemm_sve512_f32, sf_gemm_sve512_f64;
#endif

#endif
