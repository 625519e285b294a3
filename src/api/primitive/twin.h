/* Within api/: the backward pass of a module, as a function: of the gradients of what the module makes, to those of what it takes.
 *
 * It is what the backward pass computes in the scope of the module. Where a gradient comes together from several readers, or is
 * added to those of other readers, the sum is not the module's. */
#ifndef SF_API_TWIN_H
#define SF_API_TWIN_H

#include "api/primitive/primitives.h"

/* A gradient that the module makes: the value and, where that is a sum with what others make, these. */
typedef struct sf_gradient {
    sf_value value; /* SF_NONE: the step needs none */
    int nothers;
    sf_value *others;
} sf_gradient;

typedef struct sf_twin {
    int ncotangents, ngradients;
    sf_value *cotangents;   /* of the results of the module that are floats, in their order */
    sf_gradient *gradients; /* of its inputs that are floats, in their order */
} sf_twin;

/* Of a subgraph that is a whole module. SF_EWRONG, at `loc`, where it cannot be told which value is which gradient. */
sf_status sf_find_twin(const sf_subgraph *part, sf_loc loc, sf_arena *arena, sf_diag *diag,
                       sf_twin *out);

#endif
