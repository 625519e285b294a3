/* Copies of graphs, and of regions: a block of one graph, in another. */
#ifndef SF_IR_CLONE_H
#define SF_IR_CLONE_H

#include "ir/graph.h"

/* The block, with all nested blocks, in a graph whose pool is that of `from` or derived from it.
 * map[v] has, for each value of `from` that the block uses and does not make, the value in the new
 * graph; for those that it makes, including arguments, it is filled in. */
sf_block *sf_block_clone(const sf_graph *from, const sf_block *block, sf_graph *to, sf_value *map);

/* One node, with all that is nested in it, at the end of a block of such a graph; `map` as above. */
void sf_node_clone(const sf_graph *from, const sf_node *node, sf_graph *to, sf_block *block,
                   sf_value *map);

/* The same with other regions, which are of that graph. */
void sf_node_clone_around(const sf_graph *from, const sf_node *node, sf_block *const *regions,
                          sf_graph *to, sf_block *block, sf_value *map);

/* Its name, and attributes of its arguments and results. */
void sf_graph_clone_head(const sf_graph *from, sf_graph *to);

/* A graph of the same pool. Numbers, and places in memory, follow the order of nodes in blocks, nested blocks before
 * the node that has them. */
sf_graph *sf_graph_clone(const sf_graph *graph);

/* A graph of the same pool, arguments and results, in which a loop is one iteration of its body,
 * and of branches one runs, that with the most nodes: which ops follow which, without the
 * conditions. */
sf_graph *sf_graph_clone_iteration(const sf_graph *graph);

/* Calls `see` for each value that the block, or a nested one, uses: as an operand or a result.
 * Those that it makes itself are among them; the same value may come several times. */
typedef void sf_see_use(void *context, sf_value value);
void sf_block_uses(const sf_graph *graph, const sf_block *block, sf_see_use *see, void *context);

#endif
