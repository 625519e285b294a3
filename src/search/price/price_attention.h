/* Attention that the unsplit program does as one op (op/attention.h), and what ranks do of it.
 *
 * A rank that has all places of some examples and heads has an op as well, and a smaller one. One that has some places alone looks
 * for it in its own step, where the target may want products and loops: then scores stand in memory, and what nodes do is read off a
 * program without the op (sf_efforts.plain).
 */
#ifndef SF_SEARCH_PRICE_PRICE_ATTENTION_H
#define SF_SEARCH_PRICE_PRICE_ATTENTION_H

#include "search/price/node_work.h"

/* Says of the nodes of such ops in the program which of their tensors are scores, and gives them their parts of what the op does.
 * Returns whether there are any. */
bool sf_see_attention(const sf_program *program, const sf_trace *trace, sf_efforts *efforts,
                      sf_arena *arena);

/* Whether the node, with these layouts, is left to the op where it is one in the unsplit program. *share: what the last of the ranks
 * does of it, which the others wait for, by an equal part. */
bool sf_keeps_attention(const sf_efforts *efforts, const sf_node *node, const sf_layout *layouts,
                        const sf_mesh *mesh, double *share);

#endif
