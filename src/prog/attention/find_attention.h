/* Attention in a graph, whatever its spelling: softmax(q k^T scale) v, forward and backward together, with all places seen or those
 * up to one's own, where places may be some of a rank's; in the step, and in bodies of loops and branches. What lies between the products is read as algebra, so that it does not matter in which order a text scales,
 * divides, sums and rounds.
 */
#ifndef SF_PROG_ATTENTION_FIND_ATTENTION_H
#define SF_PROG_ATTENTION_FIND_ATTENTION_H

#include "prog/rewritten_graph.h"
#include "prog/target.h"

/* The graph with ops of op/attention.h in the place of what the target has kernels for, without what nobody needs any more; none,
 * where there is none. `rounds`: products of f32 may be rounded; `narrows`:
 * so may f32 results of products of narrower types. */
sf_regraph sf_find_attention(const sf_graph *graph, const sf_target *target, bool rounds,
                             bool narrows);

#endif
