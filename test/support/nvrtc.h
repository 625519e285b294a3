/* Text of kernels, compiled for a GPU where NVRTC is. */
#ifndef TEST_SUPPORT_NVRTC_H
#define TEST_SUPPORT_NVRTC_H

#include "run/cuda/cuda_libraries.h"
#include "run/text/kernel_text.h"

/* NULL where it is not here. */
const sf_cuda_compiler *test_nvrtc(void);

/* Compiles kernels first to first + count - 1 for an architecture such as "sm_90"; the test fails where that does. */
void test_nvrtc_compile(const sf_cuda_compiler *compiler, const sf_kernels *kernels, size_t first,
                        size_t count, const char *architecture);

#endif
