/* Matrix kernels for SVE of 512 bits; compiled with it on, called only where it is there. */
#if defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS == 512
#define VECTOR_BYTES 64
#define ROWS 12
#define VECTORS 2
#define SET(t) sf_gemm_sve512_##t

#include "run/gemm/gemm_isa.inc"
#else
typedef int sf_gemm_sve512_is_not_here;
#endif
