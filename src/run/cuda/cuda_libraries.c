#include "run/cuda/cuda_libraries.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

/* One library: its names, newest first, and the functions that are called. */
typedef struct source {
    const char *part_of; /* for the message */
    const char *names[6];
    size_t count;
    const char *const *symbols;
} source;

static sf_status fail_missing(const source *s, const char *why, sf_diag *diag)
{
    sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "engine cuda needs %s: %s", s->part_of, why);
    return sf_hint(diag, "option engine cpu runs the step without a GPU");
}

static sf_status load_library(const source *s, void **functions, sf_diag *diag)
{
    void *handle = NULL;
    char why[256], path[160];
    for (size_t i = 0; i < 6 && s->names[i] && !handle; i++) {
        handle = dlopen(s->names[i], RTLD_NOW | RTLD_GLOBAL);
        snprintf(path, sizeof path, "/usr/local/cuda/lib64/%s", s->names[i]);
        if (!handle && i > 0)
            handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    if (!handle) {
        snprintf(why, sizeof why, "%s is not there", s->names[0]);
        return fail_missing(s, why, diag);
    }
    for (size_t i = 0; i < s->count; i++) {
        functions[i] = dlsym(handle, s->symbols[i]);
        if (!functions[i]) {
            snprintf(why, sizeof why, "%s has no %s", s->names[0], s->symbols[i]);
            return fail_missing(s, why, diag);
        }
    }
    return SF_OK;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static sf_status load_once(const source *s, void **functions, bool *is_loaded, sf_diag *diag)
{
    pthread_mutex_lock(&lock);
    sf_status status = *is_loaded ? SF_OK : load_library(s, functions, diag);
    *is_loaded = status == SF_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

#define X(member, symbol, parameters) #symbol,
#define LOADER(function, type, LIST, what, ...)                                                    \
    sf_status function(sf_diag *diag, const type **out) LOAD(type, LIST, what, __VA_ARGS__)
#define LOAD(type, LIST, what, ...)                                                                \
    {                                                                                              \
        static const char *const symbols[] = {LIST(X)};                                            \
        const source from = {what, {__VA_ARGS__}, sizeof symbols / sizeof *symbols, symbols};      \
        static union {                                                                             \
            type table;                                                                            \
            void *functions[sizeof symbols / sizeof *symbols];                                     \
        } loaded;                                                                                  \
        static bool is_loaded;                                                                     \
        *out = &loaded.table;                                                                      \
        return load_once(&from, loaded.functions, &is_loaded, diag);                               \
    }

LOADER(sf_cuda_load_driver, sf_cuda_driver, SF_CUDA_DRIVER, "the driver of a GPU", "libcuda.so.1",
       "libcuda.so")
LOADER(sf_cuda_load_compiler, sf_cuda_compiler, SF_CUDA_COMPILER, "NVRTC of the CUDA toolkit",
       "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12")
LOADER(sf_cuda_load_products, sf_cuda_products, SF_CUDA_PRODUCTS, "cuBLASLt of the CUDA toolkit",
       "libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12")
LOADER(sf_cuda_load_convolutions, sf_cuda_convolutions, SF_CUDA_CONVOLUTIONS, "cuDNN",
       "libcudnn.so.9", "libcudnn.so")
sf_status sf_cuda_load_exchanges(const char *path, sf_diag *diag, const sf_cuda_exchanges **out)
    LOAD(sf_cuda_exchanges, SF_CUDA_EXCHANGES, "NCCL", path ? path : "libnccl.so.2",
         path ? NULL : "libnccl.so.2", path ? NULL : "libnccl.so")
#undef X
