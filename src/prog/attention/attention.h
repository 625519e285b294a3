/* Attention in a graph, whatever its spelling: softmax(q k^T scale) v, forward and backward together, with all places seen or those
 * up to one's own. What lies between the products is read as algebra, so that it does not matter in which order a text scales,
 * divides, sums and rounds.
 */
#ifndef SF_PROG_ATTENTION_H
#define SF_PROG_ATTENTION_H

#include "ir/graph.h"
#include "prog/target.h"

/* The graph with ops of op/attention.h in the place of what the target has kernels for, without what nobody needs any more. Where
 * there is none, it is NULL, and so are the lists. */
typedef struct sf_attention {
    sf_graph *graph;
    sf_arena arena;
    sf_value *
        values; /* by value of the graph that was given: what stands for it in this one, or SF_NONE */
    uint32_t *
        nodes; /* by node of that: the node of this one that computes it, or SF_NONE: nobody needs it */
    uint32_t
        *node_of; /* by node of this one's top block: the one of that in whose place it stands */
} sf_attention;

/* `rounds`: products of f32 may be rounded. For sf_attention_free. */
sf_attention sf_find_attention(const sf_graph *graph, const sf_target *target, bool rounds);
void sf_attention_free(sf_attention *attention);

#endif
