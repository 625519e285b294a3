/* Matrix kernels for AVX-512; compiled with it on, called only where it is there. */
#if defined(__x86_64__)
#define VECTOR_BYTES 64
#define ROWS 12
#define VECTORS 2
#define SET(t) sf_gemm_avx512_##t

#include "run/gemm/gemm_isa.inc"
#else
typedef int sf_gemm_avx512_is_not_here;
#endif
