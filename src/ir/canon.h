/* One form for one computation, whatever text it came from.
 *
 * Merging makes one node of nodes that compute the same from the same values, and puts the operands
 * of commutative ops in an order of their own. Arranging puts the nodes of every block in an order
 * that depends on the computation alone: depth first from the results, operands before readers and
 * those of the longest path first, so that few values are made before they are needed. Unused nodes
 * are dropped. After both, two graphs of one hash (sf_graph_hash) differ in names, places and
 * numbers alone. */
#ifndef SF_IR_CANON_H
#define SF_IR_CANON_H

#include "ir/graph.h"

/* Nodes with effects are not merged. Nested blocks are arranged, the top block keeps its order. Of
 * several scopes the common one stays. Nodes that have operands are merged within one of `places`
 * alone, by node; NULL: all are in one. `same`, by value, is filled with the merged value; or it is
 * NULL. */
void sf_graph_merge(sf_graph *graph, const uint32_t *places, sf_value *same);

/* Nested blocks by their results. The top block: predecessors of the roots, root by root, then
 * those of its results, then nodes with effects. Nodes with effects stay in order. Numbers stay as
 * they were, and memory too: sf_graph_clone (ir/clone.h) brings both in order. */
void sf_graph_arrange(sf_graph *graph, size_t nroots, const sf_value *roots);

/* Drops unused nodes from the top block. */
void sf_graph_prune(sf_graph *graph);

#endif
