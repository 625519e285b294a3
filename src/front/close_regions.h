/* Closed regions: loops and branches are given all that they see.
 *
 * In a text, the body of a loop may use any value of the blocks around it. Here such a value becomes an operand of
 * the node, and an argument of each of its regions (sf_control in ir/opdef.h), so that what a loop reads is said as
 * for every other op: how it is laid out, who makes it, who else reads it. Constants are copied instead.
 */
#ifndef SF_FRONT_CLOSE_REGIONS_H
#define SF_FRONT_CLOSE_REGIONS_H

#include "ir/graph.h"

/* Operands are added in the order in which regions first use them, so nodes are in their final order. */
void sf_graph_close(sf_graph *graph);

#endif
