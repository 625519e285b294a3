/* Tables of the families of fast kernels for fast.c. */
#ifndef SF_RUN_FAST_FAST_KERNELS_H
#define SF_RUN_FAST_FAST_KERNELS_H

#include "run/fast/fast.h"

/* The variant of ops that a family has no kernel for. */
enum { SF_FAST_NONE = -1 };

/* Only `choose` reads texts and regions. It encodes for the other functions what they need in the
 * variant: a number of up to 63 bits, in an encoding of the family. */
struct sf_fast {
    int64_t (*choose)(const sf_op *op); /* a variant, or SF_FAST_NONE. NULL: always 0 */
    int64_t (*scratch)(const sf_op *op, int64_t variant, int threads); /* NULL: none */
    void (*run)(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                void *scratch, sf_threads *threads);
};

extern const sf_fast sf_fast_attention, sf_fast_attention_gradient, sf_fast_bitcast_convert,
    sf_fast_broadcast_in_dim, sf_fast_complex, sf_fast_concatenate, sf_fast_dynamic_slice,
    sf_fast_dynamic_update_slice, sf_fast_gather, sf_fast_iota, sf_fast_pad, sf_fast_reduce,
    sf_fast_reduce_window, sf_fast_reshape, sf_fast_reverse, sf_fast_rng_bit_generator,
    sf_fast_scatter, sf_fast_select_and_scatter, sf_fast_slice, sf_fast_sort, sf_fast_top_k,
    sf_fast_transpose;

#endif
