/* A tensor in memory: a piece of a logical tensor with its elements, packed and row-major. */
#ifndef SF_IR_TENSOR_H
#define SF_IR_TENSOR_H

#include "ir/tensor_region.h"

typedef struct sf_tensor {
    const sf_type *type;  /* of the piece */
    void *data;           /* type->count elements */
    const sf_span *spans; /* type->rank of them, or NULL when the piece is the whole tensor */
} sf_tensor;

/* The span of one dimension, also when `spans` is NULL. */
static inline sf_span sf_tensor_span(const sf_tensor *tensor, int dim)
{
    return tensor->spans ? tensor->spans[dim] : sf_span_whole(tensor->type->dims[dim]);
}

/* Element by flat index. */
static inline double sf_get_f64(const sf_tensor *tensor, int64_t index)
{
    return sf_load_f64(tensor->type->dtype, tensor->data, index);
}

static inline int64_t sf_get_i64(const sf_tensor *tensor, int64_t index)
{
    return sf_load_i64(tensor->type->dtype, tensor->data, index);
}

/* Copies the elements that `piece` holds out of `whole`. `piece` has spans. */
void sf_tensor_cut(const sf_tensor *whole, sf_tensor *piece);

/* Steps a multi-index through a shape in row-major order; false after the last one. */
bool sf_next_index(int rank, const int64_t *dims, int64_t *index);

/* The flat row-major index. */
int64_t sf_flat_index(int rank, const int64_t *dims, const int64_t *index);

#endif
