/* Scanned tensors: what a loop takes slices of, or puts slices into, turn by turn. */
#ifndef SF_OP_SCANNED_H
#define SF_OP_SCANNED_H

#include "ir/graph.h"

/* Whether the block sees of its argument nothing but slices that have all of dimension `dim`, and gives it back, if at
 * all, as it came or with such slices put into it: then it need not be whole along that dimension at any time. Of
 * any dimension, where `dim` is -1. */
bool sf_is_scanned_in(const sf_graph *graph, const sf_block *block, uint32_t argument, int dim);

/* The same of an operand of a loop or branch, in all of its regions. */
bool sf_is_scanned(const sf_graph *graph, const sf_node *node, uint32_t operand, int dim);

#endif
