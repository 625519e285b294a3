/* Within api/: the backward pass of a module or subgraph, as a function from the gradients of its
 * outputs to those of its inputs.
 *
 * Of a module, it is the nodes of the backward pass in its scope. Of a subgraph, it is those nodes
 * of its ops' scopes that read no other values of the forward pass than the subgraph's inputs and
 * values, and are connected with readers of those. If a gradient is a sum over several readers, or
 * is added to those of other readers, the sum is not part of it. */
#ifndef SF_API_PRIMITIVE_BACKWARD_OF_H
#define SF_API_PRIMITIVE_BACKWARD_OF_H

#include "api/primitive/primitives.h"

/* A gradient that it makes: the value and, if that is a sum with gradients of others, the terms. */
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

/* SF_EMISMATCH, at `loc`, if values cannot be matched with gradients. */
sf_status sf_find_backward_part(const sf_subgraph *part, sf_loc loc, sf_arena *arena, sf_diag *diag,
                                sf_backward_part *out);

#endif
