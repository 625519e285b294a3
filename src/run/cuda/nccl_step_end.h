/* Steps of ranks that exchange by NCCL, of which none ends alone: within the limit of the ranks each comes to its end, or it is said who does
 * not. Without NCCL there is nothing to wait for. */
#ifndef SF_RUN_CUDA_NCCL_STEP_END_H
#define SF_RUN_CUDA_NCCL_STEP_END_H

#include "run/cuda/cuda.h"

/* This rank has put on its lanes what the step is: the others are told, so that who is late has a name. */
sf_status sf_cuda_arrive(cuda *c, sf_diag *diag);

/* What is put on the lane that computes is done, within the limit of the ranks; to be asked for before the host waits for it. */
sf_status sf_cuda_settle(cuda *c, sf_diag *diag);

/* The same at the end of a step, when all have arrived. */
sf_status sf_cuda_end_step(cuda *c, sf_diag *diag);

/* Something has failed: what is under way ends, whatever it has brought, and this rank exchanges no more. */
void sf_cuda_leave_nccl_groups(cuda *c);

#endif
