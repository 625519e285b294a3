/* Closed regions: loops and branches get all outer values that they read as operands.
 *
 * In a text, the body of a loop may use any value of the blocks around it. Here such a value
 * becomes an operand of the node, and an argument of each of its regions (sf_control in
 * ir/opdef.h), so that the reads of a loop are explicit as for every other op: layout, maker, other
 * readers. Constants are copied instead. */
#ifndef SF_FRONT_CLOSE_REGIONS_H
#define SF_FRONT_CLOSE_REGIONS_H

#include "ir/graph.h"

/* Operands are added in the order in which regions first use them, so nodes are in their final order. */
void sf_graph_close(sf_graph *graph);

#endif
