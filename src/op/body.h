/* Combining bodies: the function that reduce, reduce_window and select_and_scatter fold with.
 *
 * A body is a monoid, named in the derived slot of the op, or a region of 2N scalar arguments (N
 * accumulators, then N elements) and N results.
 */
#ifndef SF_OP_BODY_H
#define SF_OP_BODY_H

#include "op/eval.h"
#include "op/words.h"

/* Checks that the operands are N = `count` inputs of one shape, then N initial values, scalars of the
 * inputs' element types, and that there are N results. */
sf_status sf_check_fold(const sf_op *op, int count, sf_diag *diag);

/* Checks that the op has a body for N = `count` values of the element types of its first operands: a
 * monoid in `slot` (then N is 1, it has an identity and can combine that type) or region number
 * `region`. */
sf_status sf_check_body(const sf_op *op, int slot, int region, int count, sf_diag *diag);

/* Whether the monoid can combine elements of the type. */
bool sf_monoid_takes(sf_monoid monoid, sf_dtype dtype);

/* Checks a region whose arguments and results are scalars: argument i has the element type of operand
 * i % count, and so have the results; `dtype` overrides that for the results unless it is
 * SF_DTYPE_COUNT. */
sf_status sf_check_scalar_block(const sf_op *op, int region, int count, int nresults,
                                sf_dtype dtype, sf_diag *diag);

/* Checks that the region has exactly these argument and result types. */
sf_status sf_check_block(const sf_op *op, int region, int narguments,
                         const sf_type *const *arguments, int nresults,
                         const sf_type *const *results, sf_diag *diag);

/* The value that changes nothing. For floats that is -0 for a sum, since -0 + 0 is 0. Not for
 * SF_MONOID_SECOND, which has none. The type is not complex; the second form takes any. */
sf_word sf_monoid_identity(sf_monoid monoid, sf_dtype dtype);
void sf_words_identity(sf_monoid monoid, sf_dtype dtype, sf_word *out);

/* a = a . b for words of an element of the type, rounding to it: for an exact sum, that is SF_F64 or SF_C128
 * (see sf_sum_dtype). */
void sf_words_combine(sf_monoid monoid, sf_dtype dtype, sf_word *a, const sf_word *b);

/* A region being folded with, element by element. */
typedef struct sf_body {
    sf_eval *eval;
    const sf_block *block;
    int count;          /* N */
    sf_tensor *values;  /* 2N scalars: accumulators, elements */
    sf_tensor *results; /* scalars that the region wrote last */
} sf_body;

/* Prepares region `region` of the op; memory is from eval->scratch. */
sf_body sf_body_new(sf_eval *eval, const sf_op *op, int region, int count, int nresults);

/* Sets scalar `slot` of the 2N to element `index` of the tensor. */
void sf_body_set(sf_body *body, int slot, const sf_tensor *tensor, int64_t index);

/* Evaluates the region on the values into `results`. */
sf_status sf_body_run(sf_body *body);

/* Runs the region and makes its results the accumulators. */
sf_status sf_body_step(sf_body *body);

/* Writes accumulator `slot` to element `index` of the tensor. */
void sf_body_get(const sf_body *body, int slot, sf_tensor *tensor, int64_t index);

#endif
