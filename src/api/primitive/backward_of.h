/* Within api/: the backward pass of a module or subgraph, as a function: of the gradients of what it makes, to those of what it takes.
 *
 * Of a module, it is what the backward pass computes in its scope. Of a subgraph, it is that of the scopes of its ops which reads no
 * other values of the forward pass than the subgraph takes and makes, and hangs together with what reads those. Where a gradient
 * comes together from several readers, or is added to those of other readers, the sum is not part of it. */
#ifndef SF_API_PRIMITIVE_BACKWARD_OF_H
#define SF_API_PRIMITIVE_BACKWARD_OF_H

#include "api/primitive/primitives.h"

/* A gradient that it makes: the value and, where that is a sum with what others make, these. */
typedef struct sf_gradient {
    sf_value value; /* SF_NONE: the step needs none */
    uint32_t
        reader; /* the one node that reads it as this gradient, where it is that of another input, too; SF_NONE: all do */
    int nothers;
    sf_value *others;
} sf_gradient;

typedef struct sf_backward_part {
    int ncotangents, ngradients;
    sf_value *cotangents;   /* of its results that are floats, in their order */
    sf_gradient *gradients; /* of its inputs that are floats, in their order */
} sf_backward_part;

/* SF_EMISMATCH, at `loc`, where it cannot be told which value is which gradient. */
sf_status sf_find_backward_part(const sf_subgraph *part, sf_loc loc, sf_arena *arena, sf_diag *diag,
                                sf_backward_part *out);

#endif
