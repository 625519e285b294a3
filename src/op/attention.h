/* Attention as one op. It is not in the table and not in any text: prog/attention/find_attention.h puts it into graphs.
 *
 *     attention            q, k, v                   ->  out, ends
 *     attention_gradient   q, k, v, out, ends, dout  ->  dq, dk, dv
 *
 * q, k, v, out and their gradients are [batch, place, head, depth], of one type; out is softmax(q
 * k^T scale) v. `ends`, float, is [batch, head, place of q]: saved by the forward pass for the
 * backward pass, in a form of the engine's own. Where it is causal, a place of q sees those of k up
 * to its own and, with an offset, which is not negative, so many more: places of q may be some of
 * all. */
#ifndef SF_OP_ATTENTION_H
#define SF_OP_ATTENTION_H

#include "op/op.h"

enum { SF_ATTENTION = SF_OP_COUNT + 1, SF_ATTENTION_GRADIENT };

enum {
    SF_ATTENTION_CAUSAL,
    SF_ATTENTION_SCALE,
    SF_ATTENTION_OFFSET,
    SF_ATTENTION_SLOTS
}; /* bool; bits of a float; places */

/* The share of pairs of places that see each other: of so many queries and keys, where it is causal with that offset; and of an op. */
double sf_attention_sees(int64_t queries, int64_t keys, int64_t offset);
double sf_attention_seen(const sf_op *op);

/* The same of the last of ranks that have parts of all queries, as far as the op determines it: the
 * other ranks wait for it. */
double sf_attention_seen_by_last(const sf_op *op);

extern const sf_opdef sf_op_attention, sf_op_attention_gradient;

#endif
