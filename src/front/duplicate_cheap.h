/* Free values are copied to their readers.
 *
 * A constant of one number, or a broadcast, that a hundred layers share would tie their layouts
 * together, though each of them can have its own at no cost. So each reader gets its own; lowering
 * merges equal ones. */
#ifndef SF_FRONT_DUPLICATE_CHEAP_H
#define SF_FRONT_DUPLICATE_CHEAP_H

#include "ir/graph.h"

/* Each has the scope and the phase of its reader, and comes before it. */
void sf_graph_unshare(sf_graph *graph);

#endif
