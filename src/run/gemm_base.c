/* Matrix kernels for what every processor of the architecture has. */
#if defined(__aarch64__)
#define ROWS 8
#define VECTORS 3
#define SET_NAME "neon"
#else
#define ROWS 4
#define VECTORS 2
#define SET_NAME "base"
#endif
#define VECTOR_BYTES 16
#define SET sf_gemm_base

#include "run/gemm_set.inc"
