/* Fast kernels of ops that no loop, product or convolution takes: moves, gather and scatter, windows,
 * reductions, sorting, random bits. They compute what the kernels of the op table compute (floating-point sums
 * may be added in another order or be kept in 32 bits), on whole contiguous tensors, in threads. For a
 * given number of threads the result is the same in every run. */
#ifndef SF_RUN_FAST_FAST_H
#define SF_RUN_FAST_FAST_H

#include "base/thread_pool.h"
#include "ir/opdef.h"

typedef struct sf_fast sf_fast;

/* The fast kernel for this op, NULL if there is none. Decided from types, attributes and regions
 * alone, before the run: `variant` becomes a number that encodes the kernel's view of texts and
 * regions, and has a meaning for this kernel only. */
const sf_fast *sf_fast_find(const sf_op *op, int64_t *variant);

/* Bytes of scratch that sf_fast_run wants. Here and there, kernel and variant are those found for the op. */
int64_t sf_fast_scratch(const sf_fast *kernel, const sf_op *op, int64_t variant, int threads);

/* Computes the results; the old content of `out` does not matter. `scratch` is aligned to 16 bytes.
 * Result i of scatter and dynamic_update_slice may be in the memory of operand i. */
void sf_fast_run(const sf_fast *kernel, const sf_op *op, int64_t variant, const sf_tensor *in,
                 sf_tensor *out, void *scratch, sf_threads *threads);

#endif
