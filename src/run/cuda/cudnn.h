/* Convolutions by cuDNN. */
#ifndef SF_RUN_CUDA_CUDNN_H
#define SF_RUN_CUDA_CUDNN_H

#include "run/cuda/library.h"
#include "run/text/convolve.h"

/* A handle, and what its plans need at most to work in; a zeroed one has no library. */
typedef struct sf_cudnn {
    const sf_cuda_convolutions *library;
    void *handle;
    int64_t workspace_bytes;
} sf_cudnn;

/* False where the library is not there: kernels of ours do its work. */
bool sf_cudnn_open(sf_cudnn *cudnn, cu_stream stream);
void sf_cudnn_close(sf_cudnn *cudnn);

typedef struct sf_cudnn_plan sf_cudnn_plan;

/* Up to `most` ways to do a convolution, what is thought to be the fastest first; returns how many. None of them rounds more
 * than asked for, or gives other bits when it is run again. */
int sf_cudnn_plans(sf_cudnn *cudnn, const sf_convolve *convolve, bool tf32, int most,
                   sf_cudnn_plan **out);
void sf_cudnn_plan_free(sf_cudnn_plan *plan);

/* In words, which way that is; for tables of times. */
int64_t sf_cudnn_plan_workspace(const sf_cudnn_plan *plan);

sf_status sf_cudnn_run(const sf_cudnn_plan *plan, char *const *images, char *workspace,
                       sf_diag *diag);

#endif
