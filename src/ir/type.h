/* Tensor types: an element type and a shape.
 *
 * Types are interned in a pool, so equal types of one pool are the same pointer. The number of
 * elements and of bytes is checked when a type is made and never overflows afterwards.
 */
#ifndef SF_IR_TYPE_H
#define SF_IR_TYPE_H

#include "base/diag.h"
#include "ir/dtype.h"
#include "sheaf/graph.h"

enum { SF_MAX_RANK = 16 };

typedef struct sf_type {
    sf_dtype dtype;
    int rank;
    int64_t count; /* of elements */
    int64_t dims[];
} sf_type;

typedef struct sf_pool sf_pool;

/* NULL when the rank is above SF_MAX_RANK (of complex numbers, whose parts are a dimension of floats, one
 * less), a dimension is negative, or the size in bytes does not fit in an int64. */
const sf_type *sf_type_get(sf_pool *pool, sf_dtype dtype, int rank, const int64_t *dims);

/* The same shape with another element type. */
const sf_type *sf_type_with(sf_pool *pool, const sf_type *type, sf_dtype dtype);

const sf_type *sf_type_scalar(sf_pool *pool, sf_dtype dtype);

int64_t sf_type_bytes(const sf_type *type);
bool sf_same_shape(const sf_type *a, const sf_type *b);

/* Writes "tensor<2x3xf32>". Returns `text`, which holds SF_TYPE_TEXT characters. */
enum { SF_TYPE_TEXT = 400 };
const char *sf_type_text(const sf_type *type, char text[SF_TYPE_TEXT]);

/* As callers of the library see it. */
void sf_view_type(const sf_type *type, sf_tensor_type *out);

/* Row-major strides in elements; `strides` holds `rank` numbers. */
void sf_strides(int rank, const int64_t *dims, int64_t *strides);

#endif
