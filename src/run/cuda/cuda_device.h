/* The device of the cuda engine: a GPU, through the libraries of its driver and toolkit, or a
 * library in its place. SHEAF_CUDA=PATH names such a library (test/emulator): it compiles the text
 * of kernels with the compiler of the system and runs their threads one by one on the host, for
 * tests on machines without a GPU. SHEAF_CUDA=sm_80, say, or PATH,sm_80, compiles kernels for that
 * architecture, which may have fewer features than the GPU.
 *
 * Compute is put on one stream, in order; copies from and to the host wait for earlier work there.
 * Other lanes run concurrently. */
#ifndef SF_RUN_CUDA_CUDA_DEVICE_H
#define SF_RUN_CUDA_CUDA_DEVICE_H

#include "base/thread_pool.h"
#include "run/text/kernel_text.h"

typedef struct sf_device sf_device;

typedef enum sf_lane {
    SF_LANE_COMPUTE,
    SF_LANE_TO_HOST, /* copies to memory of the host, */
    SF_LANE_FROM_HOST,
    SF_LANE_EXCHANGE, /* exchanges between ranks of one process */
    SF_LANE_COUNT     /* later lanes are added on request */
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

    /* Compiles all kernels; functions[i] is the argument of `launch` for kernel i. */
    sf_status (*compile)(sf_device *d, const sf_kernels *module, sf_threads *threads, sf_diag *diag,
                         void **functions);
    sf_status (*launch)(sf_device *d, void *function, int64_t blocks, int threads, void **params,
                        sf_diag *diag);

    /* The library's plan for a DOT or a CONV; *plan is NULL if it has none, and a kernel of ours
     * runs. *is_whole, initially false: the plan includes the epilogue
     * (run/cuda/cublaslt_epilogue.h). */
    sf_status (*plan)(sf_device *d, const sf_inst *inst, sf_diag *diag, void **plan,
                      bool *is_whole);

    void (*drop)(sf_device *d, void *plan);
    sf_status (*multiply)(sf_device *d, const void *plan, char *const *parts, sf_diag *diag);

    /* On a lane: a copy of bytes between any memory of the device and memory of `pin`; a launch;
     * waiting for all of it. Any thread may use that of exchanges. */
    sf_status (*move)(sf_device *d, sf_lane lane, char *to, const char *from, int64_t bytes,
                      sf_diag *diag);
    sf_status (*launch_on)(sf_device *d, sf_lane lane, void *function, int64_t blocks, int threads,
                           void **params, sf_diag *diag);
    sf_status (*wait_on)(sf_device *d, sf_lane lane, sf_diag *diag);

    /* Later work on a lane waits for the current work on another; for the work on a lane at which
     * event number `event`, of at most `count`, was recorded last. */
    sf_status (*follow)(sf_device *d, sf_lane which, sf_lane whom, sf_diag *diag);
    sf_status (*raise)(sf_device *d, sf_lane lane, size_t event, size_t count, sf_diag *diag);
    sf_status (*await)(sf_device *d, sf_lane lane, size_t event, sf_diag *diag);

    /* Adds a lane, for work that must not wait for any other; SF_EUNSUPPORTED past
     * SF_MORE_LANES. The lane as the stream of a library that puts work there; whether all work
     * on a lane is done. */
    sf_status (*add)(sf_device *d, sf_diag *diag, sf_lane *out);
    sf_status (*stream)(sf_device *d, sf_lane lane, sf_diag *diag, void **out);
    sf_status (*ended)(sf_device *d, sf_lane lane, sf_diag *diag, bool *out);

    /* Mark number `index`, of at most `count`, comes after the work of the lane so far; when that work is waited for, `when` says
     * for each mark how many seconds after the first it was done. */
    sf_status (*mark)(sf_device *d, sf_lane lane, size_t index, size_t count, sf_diag *diag);
    sf_status (*when)(sf_device *d, size_t count, double *seconds, sf_diag *diag);

    /* Launches from begin to end are not run, but captured as one graph, which `replay` runs. NULL:
     * not supported. */
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
    uint64_t id[2];    /* its unique identity */
    int count;         /* of those that this process may use */
};

/* The device of SHEAF_CUDA, or GPU `which`: GPUs are assigned round-robin, so that number 8 of 8 is
 * the first. If there is none, one line names the missing part. */
sf_status sf_device_open(int which, sf_diag *diag, sf_device **out);

/* A description of that device, whether or not it is there. */
const char *sf_device_name(void);

/* Bytes that can be had on the device; 0 where that is not known. */
sf_status sf_device_memory(sf_diag *diag, int64_t *out);

/* Whether the device of SHEAF_CUDA multiplies fp8. */
bool sf_device_multiplies_fp8(void);

/* Seconds of a copy of so many bytes between the device and memory of the host, concurrent with
 * compute. */
sf_status sf_device_copy_seconds(int64_t bytes, sf_diag *diag, double *out);

sf_status sf_device_open_gpu(int which, sf_diag *diag, sf_device **out);

/* A library in place of a GPU has a function of this name and type. Tests have one, which runs
 * kernels on the host (test/emulator). */
#define SF_DEVICE_OPENING "sheaf_cuda_device"
typedef sf_status sf_device_opening(int which, sf_diag *diag, sf_device **out);

/* Loads the driver and its libraries, and finds the first GPU; if there is none, one line names the
 * missing part. */
sf_status sf_gpu_find(sf_diag *diag);

/* Of the first: the architecture, as in 90; 0 where there is none. */
int sf_gpu_version(void);

/* Whether there is a GPU that can be used: its driver, NVRTC and cuBLASLt load, and the driver finds one; says nothing where there
 * is none. */
bool sf_device_has_gpu(void);

/* Likewise of the device of SHEAF_CUDA. */
bool sf_device_is_there(void);

#endif
