/* What the families of fast kernels give to fast.c, and what they share. */
#ifndef SF_RUN_FAST_KIND_H
#define SF_RUN_FAST_KIND_H

#include "op/words.h"
#include "run/fast/fast.h"
#include "run/vec/vec.h"

/* The variant of ops that a family has no kernel for. */
enum { SF_FAST_NONE = -1 };

/* Only `choose` looks at texts and regions. What the others need of these is in the variant: a number of
 * up to 63 bits, which each family makes up for itself. */
struct sf_fast {
    int64_t (*choose)(const sf_op *op); /* a variant, or SF_FAST_NONE. NULL: always 0 */
    int64_t (*scratch)(const sf_op *op, int64_t variant, int threads); /* NULL: none */
    void (*run)(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                void *scratch, sf_threads *threads);
};

extern const sf_fast sf_fast_bitcast_convert, sf_fast_broadcast_in_dim, sf_fast_concatenate,
    sf_fast_dynamic_slice, sf_fast_dynamic_update_slice, sf_fast_gather, sf_fast_iota, sf_fast_pad,
    sf_fast_reduce, sf_fast_reduce_window, sf_fast_reshape, sf_fast_reverse,
    sf_fast_rng_bit_generator, sf_fast_scatter, sf_fast_select_and_scatter, sf_fast_slice,
    sf_fast_sort, sf_fast_top_k, sf_fast_transpose;

/* Folding in registers (run/vec/vec.h). `memory` is the type that a register has in memory as it is:
 * accumulators that are kept between steps stand there. */
enum { SF_FAST_REGISTER = 1024 }; /* elements */

typedef struct sf_folding {
    const sf_vec *vec;
    sf_monoid monoid;
    sf_dtype dtype, memory;
    sf_vclass class;
    sf_vkernel *combine;
    sf_vreduce *fold; /* along a register */
} sf_folding;

/* A register on the stack. */
typedef union sf_register {
    _Alignas(64) double f64[SF_FAST_REGISTER];
    float f32[SF_FAST_REGISTER];
    int32_t i32[SF_FAST_REGISTER];
    int64_t i64[SF_FAST_REGISTER];
} sf_register;

/* Not for SF_MONOID_SECOND and NONE. */
sf_folding sf_folding_of(sf_monoid monoid, sf_dtype dtype);

/* Whether accumulators can stand in the result itself. */
static inline bool sf_folding_native(const sf_folding *folding)
{
    return sf_dtype_get(folding->dtype)->bits >= 32;
}

/* `count` elements of the register become the word. */
void sf_register_fill(sf_vclass class, sf_word word, int64_t count, sf_register *to);

/* *to = *to combined with *from, one element of the class each. */
void sf_folding_one(const sf_folding *folding, void *to, const void *from);

#endif
