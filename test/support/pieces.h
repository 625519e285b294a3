/* Pieces of tensors when a factor of an op is cut, and elements as numbers. */
#ifndef TEST_SUPPORT_PIECES_H
#define TEST_SUPPORT_PIECES_H

#include "ir/opdef.h"
#include "ir/tensor.h"

const char *test_role_name(sf_factor_role role);

/* Part 0 or 1 of a complex element; of any other, the number and 0. */
double test_get_part(const sf_tensor *tensor, int64_t index, int part);

/* The absolute value of an element. */
double test_get_size(const sf_tensor *tensor, int64_t index);

/* How many indices the span holds. */
int64_t test_span_size(sf_span span);

/* Copies the elements that `piece` holds into `whole`. */
void test_paste(const sf_tensor *piece, sf_tensor *whole);

/* The spans of tensor `tensor` when factor `factor` is cut to [first, end) and all others are whole.
 * `spans` holds the rank of the tensor. */
void test_op_piece(const sf_op *op, const sf_factoring *factoring, int factor, int64_t first,
                   int64_t end, int tensor, sf_span *spans);

#endif
