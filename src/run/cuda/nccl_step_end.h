/* Steps of ranks that exchange by NCCL, of which none ends alone: within the limit of the ranks each comes to its end, or it is said who does
 * not. Without NCCL there is nothing to wait for. */
#ifndef SF_RUN_CUDA_NCCL_STEP_END_H
#define SF_RUN_CUDA_NCCL_STEP_END_H

#include "run/cuda/cuda.h"

/* This rank has put its step on its lanes: it informs the others, so that messages can name a rank
 * that is late. */
sf_status sf_cuda_arrive(cuda *c, sf_diag *diag);

/* Work on the compute lane is done, within the limit of the ranks; to be called before the host
 * waits for it. */
sf_status sf_cuda_settle(cuda *c, sf_diag *diag);

/* The same at the end of a step, when all have arrived. */
sf_status sf_cuda_end_step(cuda *c, sf_diag *diag);

/* After a failure: work in flight ends, with any result, and this rank exchanges no more. */
void sf_cuda_leave_nccl_groups(cuda *c);

#endif
