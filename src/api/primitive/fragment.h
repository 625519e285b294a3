/* Within api/: a sketch, built on tensors of a graph. */
#ifndef SF_API_FRAGMENT_H
#define SF_API_FRAGMENT_H

#include "front/normal.h"
#include "match/sketch.h"

/* Adds the sketch on these inputs, at the emitter's place; `out` has one value for each of its
 * results. SF_EMISMATCH if types are incompatible. */
sf_status sf_fragment_build(const sf_sketch *sketch, sf_emitter *emitter, const sf_value *inputs,
                            sf_diag *diag, sf_value *out);

#endif
