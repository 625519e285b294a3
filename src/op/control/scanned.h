/* Scanned tensors: a loop takes slices of them, or puts slices into them, in each iteration. */
#ifndef SF_OP_SCANNED_H
#define SF_OP_SCANNED_H

#include "ir/graph.h"

/* Whether the node, which reads the value, reads only a slice of it that has all of dimension
 * `dim`, or puts such a slice into it. Of any dimension, if `dim` is -1. */
bool sf_reads_slices(const sf_graph *graph, const sf_node *node, sf_value value, int dim);

/* Whether a loop or branch reads of its operand, in all of its regions, only such slices, and
 * returns it, if at all, unchanged or with such slices put into it: then it need not be whole along
 * that dimension at any time. */
bool sf_is_scanned(const sf_graph *graph, const sf_node *node, uint32_t operand, int dim);

#endif
