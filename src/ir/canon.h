/* One form for one computation, whatever text it came from.
 *
 * Merging makes one node of nodes that compute the same from the same values, and puts the operands of
 * commutative ops in an order of their own. Arranging puts the nodes of every block in an order that
 * follows from what is computed: depth first from what is asked for, operands before who reads them and those
 * that take the longest way first, so that little is made before it is needed. Nodes
 * that nobody asks for are dropped. After both, two graphs of one hash (sf_graph_hash) differ in names, places and
 * numbers alone.
 */
#ifndef SF_IR_CANON_H
#define SF_IR_CANON_H

#include "ir/graph.h"

/* What has an effect stays by itself. Nested blocks are arranged, the top block keeps its order. Of several
 * scopes the one that they have in common stays. Nodes that read something are merged within one of `places` alone, by
 * node; NULL: all are in one. `same`, by value, is filled with what stands for it; or it is NULL. */
void sf_graph_merge(sf_graph *graph, const uint32_t *places, sf_value *same);

/* Nested blocks by their results. The top block: what the roots need, root by root, then what its results need, then
 * what has an effect. Nodes with effects stay in order. Numbers stay as they were, and memory too: sf_graph_clone
 * (ir/clone.h) brings both in order. */
void sf_graph_arrange(sf_graph *graph, size_t nroots, const sf_value *roots);

/* Drops what nobody asks for from the top block. */
void sf_graph_prune(sf_graph *graph);

#endif
