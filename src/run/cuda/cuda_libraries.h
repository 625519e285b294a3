/* The libraries of a GPU, loaded on first use: the functions that are called, declared here, so
 * that building needs none of their headers. Numbers are those of CUDA 12 and 13. */
#ifndef SF_RUN_CUDA_CUDA_LIBRARIES_H
#define SF_RUN_CUDA_CUDA_LIBRARIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

typedef uint64_t cu_pointer;
typedef struct cu_stream_ *cu_stream;

/* The driver: libcuda. Functions return 0, or a number that get_error_string knows. */
#define SF_CUDA_DRIVER(X)                                                                          \
    X(init, cuInit, (unsigned))                                                                    \
    X(device_count, cuDeviceGetCount, (int *))                                                     \
    X(device_get, cuDeviceGet, (int *, int))                                                       \
    X(device_name, cuDeviceGetName, (char *, int, int))                                            \
    X(device_id, cuDeviceGetUuid_v2, (char *, int))                                                \
    X(device_attribute, cuDeviceGetAttribute, (int *, int, int))                                   \
    X(context_retain, cuDevicePrimaryCtxRetain, (void **, int))                                    \
    X(context_release, cuDevicePrimaryCtxRelease_v2, (int))                                        \
    X(context_set, cuCtxSetCurrent, (void *))                                                      \
    X(memory_info, cuMemGetInfo_v2, (size_t *, size_t *))                                          \
    X(alloc, cuMemAlloc_v2, (cu_pointer *, size_t))                                                \
    X(release, cuMemFree_v2, (cu_pointer))                                                         \
    X(pin, cuMemAllocHost_v2, (void **, size_t))                                                   \
    X(unpin, cuMemFreeHost, (void *))                                                              \
    X(put, cuMemcpyHtoDAsync_v2, (cu_pointer, const void *, size_t, cu_stream))                    \
    X(get, cuMemcpyDtoHAsync_v2, (void *, cu_pointer, size_t, cu_stream))                          \
    X(copy, cuMemcpyDtoDAsync_v2, (cu_pointer, cu_pointer, size_t, cu_stream))                     \
    X(set, cuMemsetD8Async, (cu_pointer, unsigned char, size_t, cu_stream))                        \
    X(module_load, cuModuleLoadData, (void **, const void *))                                      \
    X(module_unload, cuModuleUnload, (void *))                                                     \
    X(module_function, cuModuleGetFunction, (void **, void *, const char *))                       \
    X(function_set, cuFuncSetAttribute, (void *, int, int))                                        \
    X(launch, cuLaunchKernel,                                                                      \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cu_stream,    \
       void **, void **))                                                                          \
    X(stream_create, cuStreamCreate, (cu_stream *, unsigned))                                      \
    X(stream_destroy, cuStreamDestroy_v2, (cu_stream))                                             \
    X(stream_wait, cuStreamSynchronize, (cu_stream))                                               \
    X(stream_query, cuStreamQuery, (cu_stream))                                                    \
    X(stream_follow, cuStreamWaitEvent, (cu_stream, void *, unsigned))                             \
    X(move, cuMemcpyAsync, (cu_pointer, cu_pointer, size_t, cu_stream))                            \
    X(event_create, cuEventCreate, (void **, unsigned))                                            \
    X(event_destroy, cuEventDestroy_v2, (void *))                                                  \
    X(event_record, cuEventRecord, (void *, cu_stream))                                            \
    X(event_elapsed, cuEventElapsedTime, (float *, void *, void *))                                \
    X(capture_begin, cuStreamBeginCapture_v2, (cu_stream, int))                                    \
    X(capture_end, cuStreamEndCapture, (cu_stream, void **))                                       \
    X(graph_instantiate, cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))       \
    X(graph_launch, cuGraphLaunch, (void *, cu_stream))                                            \
    X(graph_destroy, cuGraphDestroy, (void *))                                                     \
    X(graph_exec_destroy, cuGraphExecDestroy, (void *))                                            \
    X(error_string, cuGetErrorString, (int, const char **))

/* The compiler: libnvrtc. */
#define SF_CUDA_COMPILER(X)                                                                        \
    X(version, nvrtcVersion, (int *, int *))                                                       \
    X(create, nvrtcCreateProgram,                                                                  \
      (void **, const char *, const char *, int, const char *const *, const char *const *))        \
    X(compile, nvrtcCompileProgram, (void *, int, const char *const *))                            \
    X(log_size, nvrtcGetProgramLogSize, (void *, size_t *))                                        \
    X(log, nvrtcGetProgramLog, (void *, char *))                                                   \
    X(binary_size, nvrtcGetCUBINSize, (void *, size_t *))                                          \
    X(binary, nvrtcGetCUBIN, (void *, char *))                                                     \
    X(destroy, nvrtcDestroyProgram, (void **))

/* Products: libcublasLt. */
typedef struct lt_algorithm {
    uint64_t data[8];
} lt_algorithm;
typedef struct lt_heuristic {
    lt_algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} lt_heuristic;

#define SF_CUDA_PRODUCTS(X)                                                                        \
    X(create, cublasLtCreate, (void **))                                                           \
    X(destroy, cublasLtDestroy, (void *))                                                          \
    X(property, cublasLtGetProperty, (int, int *))                                                 \
    X(product_create, cublasLtMatmulDescCreate, (void **, int, int))                               \
    X(product_set, cublasLtMatmulDescSetAttribute, (void *, int, const void *, size_t))            \
    X(product_destroy, cublasLtMatmulDescDestroy, (void *))                                        \
    X(layout_create, cublasLtMatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t))      \
    X(layout_set, cublasLtMatrixLayoutSetAttribute, (void *, int, const void *, size_t))           \
    X(layout_destroy, cublasLtMatrixLayoutDestroy, (void *))                                       \
    X(preference_create, cublasLtMatmulPreferenceCreate, (void **))                                \
    X(preference_set, cublasLtMatmulPreferenceSetAttribute, (void *, int, const void *, size_t))   \
    X(preference_destroy, cublasLtMatmulPreferenceDestroy, (void *))                               \
    X(choose, cublasLtMatmulAlgoGetHeuristic,                                                      \
      (void *, void *, void *, void *, void *, void *, void *, int, lt_heuristic *, int *))        \
    X(multiply, cublasLtMatmul,                                                                    \
      (void *, void *, const void *, const void *, void *, const void *, void *, const void *,     \
       const void *, void *, void *, void *, const lt_algorithm *, void *, size_t, cu_stream))

/* Convolutions: libcudnn. */
#define SF_CUDA_CONVOLUTIONS(X)                                                                    \
    X(create, cudnnCreate, (void **))                                                              \
    X(destroy, cudnnDestroy, (void *))                                                             \
    X(set_stream, cudnnSetStream, (void *, cu_stream))                                             \
    X(property, cudnnGetProperty, (int, int *))                                                    \
    X(make, cudnnBackendCreateDescriptor, (int, void **))                                          \
    X(drop, cudnnBackendDestroyDescriptor, (void *))                                               \
    X(set, cudnnBackendSetAttribute, (void *, int, int, int64_t, const void *))                    \
    X(get, cudnnBackendGetAttribute, (void *, int, int, int64_t, int64_t *, void *))               \
    X(finish, cudnnBackendFinalize, (void *))                                                      \
    X(execute, cudnnBackendExecute, (void *, void *, void *))

/* Exchanges between GPUs: libnccl. Functions return 0 or an nccl_result; these types name their
 * arguments, so that a test can check the list against the header. */
typedef int nccl_type, nccl_operation, nccl_result;
typedef struct nccl_comm_ *nccl_comm;
typedef cu_stream nccl_stream;
typedef struct nccl_id {
    char bytes[128];
} nccl_id;

/* The beginning of the library's struct; its size marks the end. */
typedef struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, cluster, fewest_blocks, most_blocks;
    const char *net;
    int split_share;
} nccl_config;

enum {
    NCCL_IN_PROGRESS = 7, /* of results */
    NCCL_INT8 = 0,        /* types of elements */
    NCCL_UINT8,
    NCCL_INT32,
    NCCL_UINT32,
    NCCL_INT64,
    NCCL_UINT64,
    NCCL_FLOAT16,
    NCCL_FLOAT32,
    NCCL_FLOAT64,
    NCCL_BFLOAT16,
    NCCL_SUM = 0, /* operations */
    NCCL_PROD,
    NCCL_MAX,
    NCCL_MIN,
};

#define SF_CUDA_EXCHANGES(X)                                                                       \
    X(version, ncclGetVersion, (int *))                                                            \
    X(make_id, ncclGetUniqueId, (nccl_id *))                                                       \
    X(init, ncclCommInitRankConfig, (nccl_comm *, int, nccl_id, int, nccl_config *))               \
    X(state, ncclCommGetAsyncError, (nccl_comm, nccl_result *))                                    \
    X(finalize, ncclCommFinalize, (nccl_comm))                                                     \
    X(destroy, ncclCommDestroy, (nccl_comm))                                                       \
    X(abort, ncclCommAbort, (nccl_comm))                                                           \
    X(group_start, ncclGroupStart, (void))                                                         \
    X(group_end, ncclGroupEnd, (void))                                                             \
    X(all_reduce, ncclAllReduce,                                                                   \
      (const void *, void *, size_t, nccl_type, nccl_operation, nccl_comm, nccl_stream))           \
    X(reduce, ncclReduce,                                                                          \
      (const void *, void *, size_t, nccl_type, nccl_operation, int, nccl_comm, nccl_stream))      \
    X(reduce_scatter, ncclReduceScatter,                                                           \
      (const void *, void *, size_t, nccl_type, nccl_operation, nccl_comm, nccl_stream))           \
    X(all_gather, ncclAllGather,                                                                   \
      (const void *, void *, size_t, nccl_type, nccl_comm, nccl_stream))                           \
    X(broadcast, ncclBroadcast,                                                                    \
      (const void *, void *, size_t, nccl_type, int, nccl_comm, nccl_stream))                      \
    X(send, ncclSend, (const void *, size_t, nccl_type, int, nccl_comm, nccl_stream))              \
    X(receive, ncclRecv, (void *, size_t, nccl_type, int, nccl_comm, nccl_stream))

#define X(member, symbol, parameters) int(*member) parameters;
typedef struct sf_cuda_driver {
    SF_CUDA_DRIVER(X)
} sf_cuda_driver;
typedef struct sf_cuda_compiler {
    SF_CUDA_COMPILER(X)
} sf_cuda_compiler;
typedef struct sf_cuda_products {
    SF_CUDA_PRODUCTS(X)
} sf_cuda_products;
typedef struct sf_cuda_convolutions {
    SF_CUDA_CONVOLUTIONS(X)
} sf_cuda_convolutions;
typedef struct sf_cuda_exchanges {
    SF_CUDA_EXCHANGES(X)
} sf_cuda_exchanges;
#undef X

/* Each is loaded once and stays. If one cannot be loaded, the message names it and its package. */
sf_status sf_cuda_load_driver(sf_diag *diag, const sf_cuda_driver **out);
sf_status sf_cuda_load_compiler(sf_diag *diag, const sf_cuda_compiler **out);
sf_status sf_cuda_load_products(sf_diag *diag, const sf_cuda_products **out);
sf_status sf_cuda_load_convolutions(sf_diag *diag, const sf_cuda_convolutions **out);

/* From this file, or, with NULL, from where the system has it. */
sf_status sf_cuda_load_exchanges(const char *path, sf_diag *diag, const sf_cuda_exchanges **out);

#endif
