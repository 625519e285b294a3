/* NCCL groups: which exchanges of a program use NCCL, and in which groups.
 *
 * The first step uses the communicator of the ranks: it checks that all of them do the same, and
 * libraries load code and try algorithms before GPUs wait for each other. From the second step on
 * NCCL runs the exchanges that it supports, in groups of ranks that have a GPU each; then no
 * exchange in them waits for the host. */
#ifndef SF_RUN_CUDA_NCCL_GROUPS_H
#define SF_RUN_CUDA_NCCL_GROUPS_H

#include "run/cuda/cuda.h"

/* Before the second step, on all ranks: finds the exchanges that use NCCL, if any. */
sf_status sf_cuda_find_nccl_groups(cuda *c, sf_diag *diag);

/* The arguments of the collective, in memory of the device. */
sf_collective_memory sf_cuda_memory_of(const sf_inst *inst, const made *m);

#endif
