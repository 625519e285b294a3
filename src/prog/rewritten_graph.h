/* A graph in another form, for lowering: the same results, by other nodes. */
#ifndef SF_PROG_REWRITTEN_GRAPH_H
#define SF_PROG_REWRITTEN_GRAPH_H

#include "op/op.h"

/* Where nothing was changed, the graph is NULL, and so are the lists. */
typedef struct sf_regraph {
    sf_graph *graph;
    sf_arena arena;
    sf_value *values; /* by value of the given graph: its value in this one, or SF_NONE */
    uint32_t *
        nodes; /* by node of that: the node of this one that computes it, or SF_NONE: nobody needs it */
    sf_block *at;      /* where sf_regraph_add adds */
    uint32_t *node_of; /* by node of this graph: the node of the given one that it replaces */
} sf_regraph;

/* An empty graph of a pool of its own, and the lists, with SF_NONE everywhere; `more`: so many nodes at most are new. */
void sf_regraph_begin(const sf_graph *graph, size_t more, sf_regraph *out);

/* Adds the replacement of a node at the end of a block of the new graph, and records it in
 * `values`, and in `nodes` if the node that computes it is not the last that was added. It may add
 * nothing, if the node is unused. False: the node is copied. */
typedef bool sf_regraph_form(void *context, const sf_node *node, sf_block *to);

/* All nodes, with those of loops and branches. */
void sf_regraph_copy(const sf_graph *graph, sf_regraph_form *form, void *context, sf_regraph *out);

/* When all nodes are made: sets results, names, and attributes of arguments. */
void sf_regraph_end(const sf_graph *graph, sf_regraph *out);

/* A new node with one result, which it returns: in the place, and with the words, of a node of the graph that was given. */
sf_value sf_regraph_add(sf_regraph *out, const sf_node *like, sf_opcode code, uint32_t noperands,
                        const sf_value *operands, const sf_attr *const *attrs, const sf_type *type);

void sf_regraph_free(sf_regraph *regraph);

#endif
