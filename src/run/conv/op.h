/* A convolution of the op table, decoded for run/conv/conv.h. */
#ifndef SF_RUN_CONV_OP_H
#define SF_RUN_CONV_OP_H

#include "prog/view.h"
#include "run/conv/conv.h"

/* The views say where the tensors lie; pointers and scratch are the caller's to set. */
sf_conv sf_conv_of_op(const sf_op *op, const sf_view *lhs, const sf_view *rhs, const sf_view *out);

#endif
