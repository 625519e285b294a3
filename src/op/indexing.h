/* How gather and scatter find their windows.
 *
 * Both have an operand, a tensor of indices, and a *windowed* tensor (the result of gather, the
 * updates of scatter). A dimension of the windowed tensor either runs through the window or picks
 * an index vector:
 *
 *     operand dim   batched      the same index in operand, indices and windowed tensor
 *                   window       a window dim of the windowed tensor runs along it
 *                   dropped      the window has size 1 there and no dim in the windowed tensor
 *     indices dim   vector       holds the components of one index vector
 *                   other        a dim of the windowed tensor that is no window dim, in order
 *
 * A component of the index vector moves the window along one operand dim that is not batched.
 * The attributes that say all this have the same slots in both, SF_INDEXING_... (op/slots.h).
 */
#ifndef SF_OP_INDEXING_H
#define SF_OP_INDEXING_H

#include "ir/opdef.h"

/* Maps between dimensions; -1 where there is none. */
typedef struct sf_indexing {
    int operand_rank, indices_rank, windowed_rank;
    int window_of[SF_MAX_RANK];   /* operand dim -> windowed dim */
    int batch_of[SF_MAX_RANK];    /* operand dim -> indices dim */
    int start_of[SF_MAX_RANK];    /* operand dim -> component of the index vector */
    int indices_of[SF_MAX_RANK];  /* windowed dim -> indices dim; -1: a window dim */
    int windowed_of[SF_MAX_RANK]; /* indices dim -> windowed dim; -1: the vector */
    int vector_dim;               /* of indices; indices_rank when each index is a vector of one */
} sf_indexing;

/* Checks the attributes against whole types and fills in the maps. Sizes of windows are for the
 * caller to check. */
sf_status sf_indexing_check(const sf_op *op, const sf_type *operand, const sf_type *indices,
                            sf_indexing *out, sf_diag *diag);

/* The same for an op that was checked. */
sf_indexing sf_indexing_get(const sf_op *op, const sf_type *operand, const sf_type *indices);

/* Where the window of a point begins, per operand dim, before any clamping. `point` is a global
 * index of the windowed tensor; its window dims do not matter. */
void sf_indexing_start(const sf_indexing *indexing, const sf_tensor *indices, const int64_t *point,
                       int64_t *start);

#endif
