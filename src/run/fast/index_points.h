/* The windows of gather and scatter, one point after the other.
 *
 * A point is one index vector. It has an element of the windowed tensor where its window begins there,
 * and, by the indices, an element of the operand where it begins there; the window has the same shape
 * on both sides.
 */
#ifndef SF_RUN_FAST_INDEX_POINTS_H
#define SF_RUN_FAST_INDEX_POINTS_H

#include "ir/opdef.h"

typedef struct sf_component {
    int dim;        /* of the operand */
    int64_t at;     /* in the indices, from the first component on */
    int64_t stride; /* of the operand's dimension */
    int64_t last;   /* where the window still fits */
} sf_component;

typedef struct sf_points {
    int rank; /* of the points; strides are in elements */
    int64_t dims[SF_MAX_RANK], windowed[SF_MAX_RANK], indices[SF_MAX_RANK], operand[SF_MAX_RANK];
    int batch[SF_MAX_RANK]; /* the operand's dimension that runs along, or -1 */
    int64_t count;
    int ncomponents;
    sf_component components[SF_MAX_RANK];
    const sf_tensor *index;
} sf_points;

sf_points sf_points_of(const sf_op *op, const sf_type *operand, const sf_tensor *indices,
                       const sf_type *windowed);

/* A point being visited. */
typedef struct sf_point {
    int64_t index[SF_MAX_RANK];
    int64_t windowed, indices, operand; /* elements; the components are not yet in `operand` */
} sf_point;

sf_point sf_points_at(const sf_points *points, int64_t number);
void sf_points_next(const sf_points *points, sf_point *point);

/* A component of the index vector. */
int64_t sf_points_read(const sf_points *points, const sf_point *point, int component);

#endif
