/* What the cuda engine runs on: a GPU, through the libraries that its driver and toolkit bring, or the host in its place,
 * which compiles the text of kernels with the compiler of the system and runs their threads one by one. SHEAF_CUDA=host
 * asks for that: it is slow, and for tests on machines without a GPU. SHEAF_CUDA=sm_80, say, or host,sm_80, has kernels compiled
 * for that architecture, which may have less than the GPU has.
 *
 * What is computed is put on one stream, in order; copies from and to the host wait for what was put there before. Other lanes go on
 * beside it.
 */
#ifndef SF_RUN_CUDA_CUDA_DEVICE_H
#define SF_RUN_CUDA_CUDA_DEVICE_H

#include "base/thread_pool.h"
#include "run/text/kernel_text.h"

typedef struct sf_device sf_device;

typedef enum sf_lane {
    SF_LANE_COMPUTE,
    SF_LANE_TO_HOST, /* copies to memory of the host, */
    SF_LANE_FROM_HOST,
    SF_LANE_EXCHANGE, /* what ranks of one process bring each other */
    SF_LANE_COUNT     /* more of them, from this on, are asked for */
} sf_lane;
enum { SF_MORE_LANES = 28 };

typedef struct sf_device_table {
    void (*close)(sf_device *d);
    sf_status (*alloc)(sf_device *d, int64_t bytes, sf_diag *diag, char **out); /* zeroed */
    void (*release)(sf_device *d, char *memory);

    /* Takes so many bytes of its memory for libraries to work in; NULL: there are none. */
    sf_status (*reserve)(sf_device *d, int64_t bytes, sf_diag *diag);

    /* Memory of the host that copies come from and go to at full speed. */
    sf_status (*pin)(sf_device *d, int64_t bytes, sf_diag *diag, char **out);
    void (*unpin)(sf_device *d, char *memory);

    sf_status (*put)(sf_device *d, char *to, const void *from, int64_t bytes, sf_diag *diag);
    sf_status (*get)(sf_device *d, void *to, const char *from, int64_t bytes, sf_diag *diag);
    sf_status (*copy)(sf_device *d, char *to, const char *from, int64_t bytes, sf_diag *diag);
    sf_status (*wait)(sf_device *d, sf_diag *diag);

    /* Compiles all kernels; functions[i] becomes what `launch` takes for kernel i. */
    sf_status (*compile)(sf_device *d, const sf_kernels *module, sf_threads *threads, sf_diag *diag,
                         void **functions);
    sf_status (*launch)(sf_device *d, void *function, int64_t blocks, int threads, void **params,
                        sf_diag *diag);

    /* How a library does a DOT or a CONV; *plan is NULL where none does, and a kernel of ours has to. *is_whole, which is false before:
     * it does the loop behind it, too (run/cuda/cublaslt_epilogue.h). */
    sf_status (*plan)(sf_device *d, const sf_inst *inst, sf_diag *diag, void **plan,
                      bool *is_whole);

    /* Likewise for a DOT and the sums of its factor 0 or 1 over what the product sums over, which go to the last of the parts
     * (run/cuda/bias_gradient.h). NULL: it has none. */
    sf_status (*plan_sum)(sf_device *d, const sf_inst *inst, int factor, sf_diag *diag,
                          void **plan);

    /* Of ways to do the same that `run` puts on the lane that computes, where it returns 0, the fastest; once found it stays that for
     * the key. NULL: it does not know. */
    int (*fastest)(sf_device *d, uint64_t key, int ways, int (*run)(void *context, int way),
                   void *context);
    void (*drop)(sf_device *d, void *plan);
    sf_status (*multiply)(sf_device *d, const void *plan, char *const *parts, sf_diag *diag);

    /* On a lane: a copy of bytes between any memory of the device and what `pin` gives; a launch; waiting for all of it. Any thread
     * may use that of exchanges. */
    sf_status (*move)(sf_device *d, sf_lane lane, char *to, const char *from, int64_t bytes,
                      sf_diag *diag);
    sf_status (*launch_on)(sf_device *d, sf_lane lane, void *function, int64_t blocks, int threads,
                           void **params, sf_diag *diag);
    sf_status (*wait_on)(sf_device *d, sf_lane lane, sf_diag *diag);

    /* What is put on a lane from now on waits for what is on another now; for the work on a lane at which event number `event`, of
     * at most `count`, was raised last. */
    sf_status (*follow)(sf_device *d, sf_lane which, sf_lane whom, sf_diag *diag);
    sf_status (*raise)(sf_device *d, sf_lane lane, size_t event, size_t count, sf_diag *diag);
    sf_status (*await)(sf_device *d, sf_lane lane, size_t event, sf_diag *diag);

    /* One lane more, for what must not wait for anything on the others; SF_EUNSUPPORTED past SF_MORE_LANES. A lane as a library takes it
     * that puts work there; whether all that was put on a lane is done. */
    sf_status (*add)(sf_device *d, sf_diag *diag, sf_lane *out);
    sf_status (*stream)(sf_device *d, sf_lane lane, sf_diag *diag, void **out);
    sf_status (*ended)(sf_device *d, sf_lane lane, sf_diag *diag, bool *out);

    /* Mark number `index`, of at most `count`, comes after the work of the lane so far; when that work is waited for, `when` says
     * for each mark how many seconds after the first it was done. */
    sf_status (*mark)(sf_device *d, sf_lane lane, size_t index, size_t count, sf_diag *diag);
    sf_status (*when)(sf_device *d, size_t count, double *seconds, sf_diag *diag);

    /* What is launched from begin to end is not run, but kept as one graph, which `replay` runs. NULL: it has none. */
    sf_status (*begin)(sf_device *d, sf_diag *diag);
    sf_status (*end)(sf_device *d, sf_diag *diag, void **graph);
    sf_status (*replay)(sf_device *d, void *graph, sf_diag *diag);
    void (*forget)(sf_device *d, void *graph);
} sf_device_table;

struct sf_device {
    const sf_device_table *table;
    bool tf32;         /* products of f32 may round their factors */
    bool is_host;      /* the host reaches its memory */
    int64_t memory;    /* bytes that can be had; 0: not known */
    int64_t workspace; /* bytes that were reserved */
    uint64_t id[2];    /* what tells it from all others */
    int count;         /* of those that this process may use */
};

/* The device that SHEAF_CUDA asks for, or GPU `which`: they are dealt out in turn, so that number 8 of 8 is the first again. Where
 * there is none, one line says what is missing. */
sf_status sf_device_open(int which, sf_diag *diag, sf_device **out);

/* In words, what that is: not whether it is there. */
const char *sf_device_name(void);

/* Bytes that can be had on the device; 0 where that is not known. */
sf_status sf_device_memory(sf_diag *diag, int64_t *out);

/* Whether the device that SHEAF_CUDA asks for multiplies fp8. */
bool sf_device_multiplies_fp8(void);

/* Seconds of a copy of so many bytes between the device and memory of the host, as beside what is computed. */
sf_status sf_device_copy_seconds(int64_t bytes, sf_diag *diag, double *out);

/* The two kinds. */
sf_status sf_device_open_gpu(int which, sf_diag *diag, sf_device **out);
sf_status sf_device_open_host(int which, sf_diag *diag, sf_device **out);

/* Loads what a GPU is used through, and finds the first; where there is none, one line says what is missing. */
sf_status sf_gpu_find(sf_diag *diag);

/* Of the first: the architecture, as in 90; 0 where there is none. */
int sf_gpu_version(void);

/* Compiles kernels for the host, all together, so that engines which want them find them. */
sf_status sf_host_load(const sf_kernels *module, sf_diag *diag);

/* Whether there is a GPU that can be used: its driver, NVRTC and cuBLASLt load, and the driver finds one; says nothing where there
 * is none. */
bool sf_device_has_gpu(void);

/* Likewise of the device that SHEAF_CUDA asks for. */
bool sf_device_is_there(void);

#endif
