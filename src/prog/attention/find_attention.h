/* Attention in a graph, whatever its spelling: softmax(q k^T scale) v, forward and backward
 * together, with a full or causal mask, where queries may be the shard of a rank; in the step, and
 * in bodies of loops and branches. The nodes between the products are read as algebra, so the order
 * in which a text scales, divides, sums and rounds does not matter. */
#ifndef SF_PROG_ATTENTION_FIND_ATTENTION_H
#define SF_PROG_ATTENTION_FIND_ATTENTION_H

#include "prog/rewritten_graph.h"
#include "prog/target.h"

/* The graph with ops of op/attention.h in place of attention for which the target has kernels,
 * without nodes that are unused then; none, if there is no such attention. `rounds`: products of
 * f32 may be rounded; `narrows`: so may f32 results of products of narrower types. */
sf_regraph sf_find_attention(const sf_graph *graph, const sf_target *target, bool rounds,
                             bool narrows);

#endif
