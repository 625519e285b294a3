/* The gradient of a bias beside the gradient of its weights. A loop sums the rows of a tensor, and a product has the same tensor as a
 * factor and sums over the same rows: cuBLASLt does both, so that nobody has to read the tensor for the loop alone.
 *
 *     loop  dy[rows, m] -> db[m]                     sum over rows
 *     dot   dy^T[m, rows] x[rows, n] -> dw[m, n]
 *
 * In the program these are a LOOP and a DOT as any others. Where the first of them can wait for the second, that runs both: one behind the
 * other, or by the library, whichever is faster. */
#ifndef SF_RUN_CUDA_BIAS_GRADIENT_H
#define SF_RUN_CUDA_BIAS_GRADIENT_H

#include "run/cuda/cuda.h"

/* The loop that can be done together with instruction `product` of the program; SF_NONE where there is none. *factor: the operand of the
 * product that it sums. */
uint32_t sf_cuda_sum_beside(const sf_program *program, uint32_t product, int *factor);

/* Those of a frame, when its bunches are known. */
sf_status sf_cuda_find_sums(cuda *c, frame *f, sf_diag *diag);

/* Runs a product and its loop; `alone` runs a product without. */
typedef sf_status sf_run_product(cuda *c, const made *m, sf_diag *diag);
sf_status sf_cuda_run_with_sum(cuda *c, summing *sum, sf_run_product *alone, sf_diag *diag);

#endif
