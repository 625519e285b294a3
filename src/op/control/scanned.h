/* Scanned tensors: what a loop takes slices of, or puts slices into, turn by turn. */
#ifndef SF_OP_SCANNED_H
#define SF_OP_SCANNED_H

#include "ir/graph.h"

/* Whether the node, which reads the value, sees of it nothing but a slice that has all of dimension `dim`, or puts such a slice
 * into it. Of any dimension, where `dim` is -1. */
bool sf_reads_slices(const sf_graph *graph, const sf_node *node, sf_value value, int dim);

/* Whether a loop or branch sees of its operand, in all of its regions, nothing but such slices, and gives it back, if at all,
 * as it came or with such slices put into it: then it need not be whole along that dimension at any time. */
bool sf_is_scanned(const sf_graph *graph, const sf_node *node, uint32_t operand, int dim);

#endif
