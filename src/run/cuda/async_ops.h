/* Collectives and copies, which go on beside the compute. */
#ifndef SF_RUN_CUDA_ASYNC_OPS_H
#define SF_RUN_CUDA_ASYNC_OPS_H

#include "run/cuda/cuda.h"

/* What a collective needs from run to run. */
void sf_cuda_make_exchange(cuda *c, const sf_inst *inst, made *m);

/* Begins a COMM or a COPY. */
sf_status sf_cuda_start_beside(cuda *c, const frame *f, uint32_t index, sf_diag *diag);

/* Puts exchanges on their lanes whose turn is before the instruction, or the end; where the frame has f->puts. */
sf_status sf_cuda_put_before(cuda *c, const frame *f, uint32_t index, sf_diag *diag);

/* Whatever the instruction waits for has ended, or will have when what is put on its lane next begins. */
sf_status sf_cuda_await(cuda *c, const frame *f, const sf_inst *inst, sf_diag *diag);

/* Likewise all that the frame has begun. */
sf_status sf_cuda_await_all(cuda *c, const frame *f, sf_diag *diag);

/* After a failure, when the others know: memory of collectives that are under way is ours again. */
void sf_cuda_drop_beside(cuda *c);

#endif
