/* Kernels compiled by NVRTC, with a cache of compiled code (base/native/disk_cache.h). */
#ifndef SF_RUN_CUDA_NVRTC_H
#define SF_RUN_CUDA_NVRTC_H

#include "base/thread_pool.h"
#include "run/cuda/cuda_libraries.h"
#include "run/text/kernel_text.h"

/* Some kernels of a module: `count` from `first` on. */
typedef struct sf_cubin {
    size_t first, count;
    char *bytes;
    size_t size;
    char *log; /* where there are no bytes: why, or NULL where memory ran out */
} sf_cubin;

/* How many there are of a module. */
size_t sf_nvrtc_parts(const sf_kernels *module);

/* Compiles a module for an architecture, "-arch=sm_90a", by all threads; `out`, zeroed, is for sf_nvrtc_free. */
void sf_nvrtc_compile(const sf_cuda_compiler *compiler, const char *architecture,
                      const sf_kernels *module, sf_threads *threads, sf_cubin *out);
void sf_nvrtc_free(sf_cubin *cubins, size_t parts);

#endif
