/* Small reductions for which NCCL has no operation, or another one than is wanted: it brings each rank what the others have, and the kernel that adds in
 * memory of one GPU combines it, with the bits that the communicator of the ranks gives. */
#ifndef SF_RUN_CUDA_NCCL_SMALL_REDUCE_H
#define SF_RUN_CUDA_NCCL_SMALL_REDUCE_H

#include "run/cuda/cuda.h"

/* Bytes of the device that it needs for what is brought; 0: it is none of these, or too large. */
int64_t sf_cuda_gathered_bytes(const exchange *e);

/* Makes it one, in this room, which others on its lane may have too. */
void sf_cuda_make_gathered(cuda *c, exchange *e, char *room);

/* What a kernel that adds is given: sources in the order in which they are combined for a segment, the result and the number of
 * elements; members + 2 values. */
void sf_cuda_fold_values(const void *const *sources, int members, int segment, void *out,
                         int64_t count, uint64_t *values, void **params);

#endif
