/* Traces the elements of a resharded tensor to their origin. */
#ifndef SF_LOCAL_ELEMENT_ORIGIN_H
#define SF_LOCAL_ELEMENT_ORIGIN_H

#include "local/local.h"

/* Whether the value, a shard of the same tensor as `source` and made from it by a reshard, has its
 * elements where its layout says: a sample, with corners and edges, is traced back, through
 * reshapes, transposes, slices and the collective, to an element of some rank's source. A node that
 * is not part of a reshard makes it false. */
bool sf_check_elements(const sf_local *local, sf_value value, sf_value source);

#endif
