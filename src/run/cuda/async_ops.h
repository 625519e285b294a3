/* Collectives and copies, which go on beside the compute. */
#ifndef SF_RUN_CUDA_ASYNC_OPS_H
#define SF_RUN_CUDA_ASYNC_OPS_H

#include "run/cuda/cuda.h"

/* Resources of a collective that live from run to run. */
void sf_cuda_make_exchange(cuda *c, const sf_inst *inst, made *m);

/* Begins a COMM or a COPY. */
sf_status sf_cuda_start_beside(cuda *c, const frame *f, uint32_t index, sf_diag *diag);

/* Puts on their lanes all exchanges that come before the instruction, or the end; for frames with
 * f->puts. */
sf_status sf_cuda_put_before(cuda *c, const frame *f, uint32_t index, sf_diag *diag);

/* All awaited events of the instruction have ended, or will have before the next work on its lane
 * begins. */
sf_status sf_cuda_await(cuda *c, const frame *f, const sf_inst *inst, sf_diag *diag);

/* Likewise all that the frame has begun. */
sf_status sf_cuda_await_all(cuda *c, const frame *f, sf_diag *diag);

/* After a failure, when the other ranks have been informed: waits until memory of collectives in
 * flight can be reused. */
void sf_cuda_drop_beside(cuda *c);

#endif
