/* Matrix kernels for the baseline of the architecture. */
#if defined(__aarch64__)
#define ROWS 8
#define VECTORS 3
#else
#define ROWS 4
#define VECTORS 2
#endif
#define VECTOR_BYTES 16
#define SET(t) sf_gemm_base_##t

#include "run/gemm/gemm_isa.inc"
