/* Batch normalization as its definition: sums over all but the feature, and arithmetic on elements.
 * So the sums split like any other, and no later stage has the op. */
#ifndef SF_FRONT_EXPAND_BATCH_NORM_H
#define SF_FRONT_EXPAND_BATCH_NORM_H

#include "front/normal.h"

/* Adds the definition of batch_norm_training, _inference or _grad. */
void sf_emit_batch_norm(sf_emitter *emitter, const sf_node_spec *spec, sf_value *out);

#endif
