/* Convolutions by cuDNN. */
#ifndef SF_RUN_CUDA_CUDNN_H
#define SF_RUN_CUDA_CUDNN_H

#include "run/cuda/cuda_libraries.h"
#include "run/text/text_conv.h"

/* The borrowed handles exist before it is opened; one without a library was not opened. */
typedef struct sf_cudnn {
    const sf_cuda_driver *driver;
    int ordinal; /* of the GPU */
    cu_stream stream;
    void *workspace; /* memory to work in */
    int64_t workspace_bytes;
    const sf_cuda_convolutions *library;
    void *handle;
    uint64_t machine; /* run/cuda/algorithm_choice.h */
} sf_cudnn;

/* False where the library is not there: kernels of ours do its work. */
bool sf_cudnn_open(sf_cudnn *cudnn);
void sf_cudnn_close(sf_cudnn *cudnn);

typedef struct sf_cudnn_plan sf_cudnn_plan;

/* The fastest way to run a convolution, as timed in memory that is freed afterwards, of those that
 * round no more than allowed and give the same bits in each run. NULL if there is none. */
sf_cudnn_plan *sf_cudnn_plan_new(const sf_cudnn *cudnn, const sf_convolve *convolve, bool tf32);
void sf_cudnn_plan_free(sf_cudnn_plan *plan);

sf_status sf_cudnn_run(const sf_cudnn_plan *plan, char *const *images, sf_diag *diag);

#endif
