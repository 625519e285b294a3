/* Fast kernels of ops that no loop, product or convolution takes: moves, gather and scatter, windows,
 * reductions, sorting, random bits. They compute what the kernels of the op table compute (floating-point sums
 * may be added in another order or be kept in 32 bits), on whole contiguous tensors, in threads. For a
 * given number of threads the result is the same in every run. */
#ifndef SF_RUN_FAST_FAST_H
#define SF_RUN_FAST_FAST_H

#include "base/threads.h"
#include "ir/opdef.h"

/* Whether there is a fast kernel for this op; decided from types, attributes and regions alone. */
bool sf_fast_can(const sf_op *op);

/* Bytes of scratch that sf_fast_run wants. */
int64_t sf_fast_scratch(const sf_op *op, int threads);

/* Computes the results; what `out` held before does not matter. `scratch` is aligned to 16 bytes. Result i
 * of scatter and dynamic_update_slice may stand where operand i does. */
void sf_fast_run(const sf_op *op, const sf_tensor *in, sf_tensor *out, void *scratch,
                 sf_threads *threads);

#endif
