/* What costs nothing is made where it is read.
 *
 * A constant of one number, or a broadcast, that a hundred layers share would tie their layouts together,
 * though each of them can have one of its own for nothing. So each reader gets its own; lowering makes one
 * again of those that turn out equal.
 */
#ifndef SF_FRONT_DUPLICATE_CHEAP_H
#define SF_FRONT_DUPLICATE_CHEAP_H

#include "ir/graph.h"

/* Each has the scope and the phase of its reader, and stands before it. */
void sf_graph_unshare(sf_graph *graph);

#endif
