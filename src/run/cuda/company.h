/* Ranks in company: which exchanges of a program go by NCCL, in which groups, and waiting for a step in which others have a part.
 *
 * The first step goes by the communicator of the ranks: it checks that all of them do the same, and whatever libraries load and
 * try at first is done before GPUs wait for each other. From the second step on NCCL does what it can, in groups of ranks that have a
 * GPU each; then nothing in them waits for the host. */
#ifndef SF_RUN_CUDA_COMPANY_H
#define SF_RUN_CUDA_COMPANY_H

#include "run/cuda/cuda.h"

/* Before the second step, on all ranks: finds what goes by NCCL, if anything. */
sf_status sf_cuda_find_company(cuda *c, sf_diag *diag);

/* What the collective is given, in memory of the device. */
sf_collective_memory sf_cuda_memory_of(const sf_inst *inst, const made *m);

/* This rank has put on its lanes what the step is: the others are told, so that who is late has a name. */
sf_status sf_cuda_arrive(cuda *c, sf_diag *diag);

/* What is put on the lane that computes is done, within the limit of the ranks; to be asked for before the host waits for it. */
sf_status sf_cuda_settle(cuda *c, sf_diag *diag);

/* The same at the end of a step, when all have arrived. */
sf_status sf_cuda_end_step(cuda *c, sf_diag *diag);

/* Something has failed: what is under way ends, whatever it has brought, and this rank exchanges no more. */
void sf_cuda_leave_company(cuda *c);

#endif
