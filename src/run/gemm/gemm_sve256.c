/* Matrix kernels for SVE of 256 bits; compiled with it on, called only where it is there. */
#if defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS == 256
#define VECTOR_BYTES 32
#define ROWS 8
#define VECTORS 3
#define SET(t) sf_gemm_sve256_##t

#include "run/gemm/gemm_isa.inc"
#else
typedef int sf_gemm_sve256_is_not_here;
#endif
