/* Matrix kernels for AVX2 and FMA; compiled with these on, called only where they are there. */
#if defined(__x86_64__)
#define VECTOR_BYTES 32
#define ROWS 4
#define VECTORS 3
#define SET(t) sf_gemm_avx2_##t

#include "run/gemm/gemm_isa.inc"
#else
typedef int sf_gemm_avx2_is_not_here;
#endif
