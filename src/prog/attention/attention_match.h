/* Attention as it was found in a graph (prog/attention/find_attention.c), to be rewritten (prog/attention/rewrite_attention.c). */
#ifndef SF_PROG_ATTENTION_ATTENTION_MATCH_H
#define SF_PROG_ATTENTION_ATTENTION_MATCH_H

#include "prog/attention/algebra.h"
#include "prog/attention/find_attention.h"

/* An operand as [batch, place, head, depth]: dimension i of that is dims[i] of the value. */
typedef struct operand {
    sf_value value;
    int dims[4];
} operand;

typedef struct found {
    operand q, k, v, dout;
    const sf_node *out; /* the product that makes it */
    const sf_node *scores;
    algebra algebra;
    double scale;
    bool causal;
    int64_t offset; /* a query sees keys up to this many places after its own */
    bool has_gradient;
    const sf_node *gradients[3]; /* the products that make dq, dk, dv */
    bool square_is_left[3];      /* the operand of each that has places of both */
    const sf_node *first;        /* of them, in the order of the block */
    sf_value made[2];            /* results of the op, in the new graph */
    bool is_used, is_gradient_used;
} found;

/* The graph with `count` of them as ops. An attention whose scores have other readers stays as it
 * is. Fills in `out`, whose arena exists. */
void rewrite_attention(const sf_graph *graph, found *list, size_t count, sf_regraph *out);

#endif
