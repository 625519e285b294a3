/* What kernels that check found (run/text/kernel_check.h), as an error. */
#ifndef SF_RUN_CUDA_CUDA_FAULTS_H
#define SF_RUN_CUDA_CUDA_FAULTS_H

#include "run/cuda/cuda.h"

/* Waits for the launch of an instruction, and fails if it reached for memory that is not its own. */
sf_status sf_cuda_look_at_faults(cuda *c, const frame *f, const made *m, const sf_launch *launch,
                                 sf_diag *diag);

#endif
