/* Small loops that are launched as one (prog/fused_launch.h, run/text/text_fused_launch.c), in a program that has its places. */
#ifndef SF_RUN_CUDA_CUDA_FUSED_LAUNCH_H
#define SF_RUN_CUDA_CUDA_FUSED_LAUNCH_H

#include "run/cuda/cuda.h"

/* Those of a frame, once all of its instructions have their code: the first of each launches for all, the others launch nothing. */
void sf_cuda_find_fused_launches(cuda *c, frame *f);

/* Kernels that nobody launches, since theirs are parts of others, are not compiled. */
void sf_cuda_drop_kernels(cuda *c);

/* Divides the time of a fused launch among its loops, by the bytes that they touch, one after the
 * other. */
void sf_cuda_share_timings(cuda *c);

#endif
