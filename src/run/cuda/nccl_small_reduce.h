/* Small reductions that NCCL does not have, or has with another result: NCCL gathers the operands
 * of all ranks on each, and the kernel that adds in memory of one GPU combines them, with the bits
 * of the ranks' communicator. */
#ifndef SF_RUN_CUDA_NCCL_SMALL_REDUCE_H
#define SF_RUN_CUDA_NCCL_SMALL_REDUCE_H

#include "run/cuda/cuda.h"

/* Bytes of the device that it needs for the gathered operands; 0: it is none of these, or too
 * large. */
int64_t sf_cuda_gathered_bytes(const exchange *e);

/* Makes it one, in this room, which others on its lane may have too. */
void sf_cuda_make_gathered(cuda *c, exchange *e, char *room);

/* The arguments of a kernel that adds: sources in the order in which they are combined for a
 * segment, the result and the number of elements; members + 2 values. */
void sf_cuda_fold_values(const void *const *sources, int members, int segment, void *out,
                         int64_t count, uint64_t *values, void **params);

#endif
