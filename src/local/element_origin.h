/* Where the elements of a moved piece come from. */
#ifndef SF_LOCAL_ELEMENT_ORIGIN_H
#define SF_LOCAL_ELEMENT_ORIGIN_H

#include "local/local.h"

/* Whether the value, a piece of the same tensor as `source` and made from it by a move, has its elements
 * where its layout says: some of them, corners and edges among them, are followed back, through reshapes,
 * transposes, slices and the collective, to the element of some rank's source that they are. A node that
 * is no part of moves makes it false. */
bool sf_check_elements(const sf_local *local, sf_value value, sf_value source);

#endif
