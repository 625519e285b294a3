/* Folding in registers (run/vec/vec.h), which reductions, windows and scatters share. */
#ifndef SF_RUN_FAST_FAST_FOLD_H
#define SF_RUN_FAST_FAST_FOLD_H

#include "ir/factor.h"
#include "op/words.h"
#include "run/vec/vec.h"

enum { SF_FAST_REGISTER = 1024 }; /* elements */

/* `memory` is the type that a register has in memory unchanged: accumulators that are kept between
 * steps have it. */
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

/* Whether accumulators can be in the result itself. */
static inline bool sf_folding_native(const sf_folding *folding)
{
    return sf_dtype_get(folding->dtype)->bits >= 32;
}

/* `count` elements of the register become the word. */
void sf_register_fill(sf_vclass class, sf_word word, int64_t count, sf_register *to);

/* *to = *to combined with *from, one element of the class each. */
void sf_folding_one(const sf_folding *folding, void *to, const void *from);

#endif
