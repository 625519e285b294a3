/* Common to the families of ops: checks, factor patterns and loops. */
#ifndef SF_OP_UTIL_H
#define SF_OP_UTIL_H

#include <inttypes.h>
#include <string.h>

#include "op/eval.h"
#include "op/op.h"

/* Every dimension of every tensor is the same factor as that dimension of the result: the pattern of
 * all element-wise ops. Scalars among the operands have no factor. */
void sf_factors_pointwise(const sf_op *op, sf_factoring *out);

/* No dimension of any tensor can be split. */
void sf_factors_whole(const sf_op *op, sf_factoring *out);

/* Sets of linear operands that recur. */
int sf_linear_first(const sf_op *op, uint32_t masks[]); /* {0} */
int sf_linear_all(const sf_op *op, uint32_t masks[]);   /* all operands together */
int sf_linear_each(const sf_op *op, uint32_t masks[]);  /* {0}, {1}: a product */

/* Whether a sum of numbers of one type, as a number of another, is the sum of those. Between floats and
 * complex numbers it is, up to rounding. Between integers only where no bits are added: a sum that wrapped in the narrow
 * type is a different number in a wide one. */
bool sf_keeps_sums(sf_dtype from, sf_dtype to);

/* Of a product of the first two operands: that its elements can be of the type. */
sf_status sf_check_product(const sf_op *op, sf_dtype dtype, sf_diag *diag);

/* Operations of one term of a sum of products: a multiplication and an addition, of complex numbers
 * four of each. */
double sf_flops_product(const sf_op *op);

/* Scratch memory of kernels: operands and results as words of 64 bits; tables of places along each
 * of their dimensions; both. sf_dimension_sum is the sum of all dimensions of all of them. */
double sf_scratch_words(const sf_op *op);
double sf_scratch_places(const sf_op *op);
double sf_scratch_words_and_places(const sf_op *op);
double sf_dimension_sum(const sf_op *op);

/* The region of a sample that combines two scalars by an op. */
#define SF_SAMPLE_BODY(op)                                                                         \
    "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"                                                  \
    "    %z = stablehlo." op " %x, %y : tensor<f32>\n"                                             \
    "    stablehlo.return %z : tensor<f32>\n"

/* One operation per element of the first result. */
double sf_flops_pointwise(const sf_op *op);

/* Out's shape with in's check: SF_EINPUT at op->loc unless the shapes are the same. */
sf_status sf_check_same_shape(const sf_op *op, int a, int b, sf_diag *diag);

/* "stablehlo.add: " style prefix is added by these; formats as printf. */
#define SF_OP_FAIL(op, diag, ...) sf_op_fail((op), (diag), __VA_ARGS__)
sf_status sf_op_fail(const sf_op *op, sf_diag *diag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A list of distinct dimensions, each in [0, rank). `what` names it in the message. */
sf_status sf_check_dims(const sf_op *op, sf_ints dims, int rank, const char *what, sf_diag *diag);

/* True when `value` is in the list. */
bool sf_has(sf_ints list, int64_t value);

/* The monoid in the derived slot, or SF_MONOID_NONE. */
sf_monoid sf_op_monoid(const sf_op *op, int slot);

/* A number whose order is the total order of the type: for floats that of the bits read as sign and
 * magnitude, so -NaN < -inf < ... < -0 < +0 < ... < inf < NaN, and no two NaNs of other bits are equal. */
int64_t sf_total_order(const sf_tensor *tensor, int64_t index);

/* Of a product: the text wants more precision than a device that rounds its operands has. */
bool sf_op_is_exact(const sf_op *op);

/* To what an operand of a product, of type `has`, may be rounded by the algorithm that the text asks for: a narrower float, or `has`. */
sf_dtype sf_asked_dtype(const sf_node *node, int operand, sf_dtype has);

#endif
