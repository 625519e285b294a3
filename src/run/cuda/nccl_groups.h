/* Ranks in company: which exchanges of a program go by NCCL, and in which groups.
 *
 * The first step goes by the communicator of the ranks: it checks that all of them do the same, and whatever libraries load and
 * try at first is done before GPUs wait for each other. From the second step on NCCL does what it can, in groups of ranks that have a
 * GPU each; then nothing in them waits for the host. */
#ifndef SF_RUN_CUDA_NCCL_GROUPS_H
#define SF_RUN_CUDA_NCCL_GROUPS_H

#include "run/cuda/cuda.h"

/* Before the second step, on all ranks: finds what goes by NCCL, if anything. */
sf_status sf_cuda_find_nccl_groups(cuda *c, sf_diag *diag);

/* What the collective is given, in memory of the device. */
sf_collective_memory sf_cuda_memory_of(const sf_inst *inst, const made *m);

#endif
