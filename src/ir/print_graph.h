/* Printing a graph as StableHLO text that reads back as the same graph. */
#ifndef SF_IR_PRINT_GRAPH_H
#define SF_IR_PRINT_GRAPH_H

#include "ir/graph.h"

typedef struct sf_printer {
    const sf_graph *graph;
    sf_buf *out;
    int indent;
    /* by value: its printed name; an operand given to a region has the outer name there */
    sf_value *shown;
    const struct sf_print_nodes *nodes;
} sf_printer;

/* Prints nodes in another way than as the ops that they are. Collectives of several tensors are then ops of one tensor each:
 * result I of node N is %nN_I. */
typedef struct sf_print_nodes {
    /* false: the node is printed as the op that it is */
    bool (*print)(void *context, sf_printer *p, const sf_node *node);
    void *context;
    const char
        *first; /* an argument of the function in front of all others: "%rank: tensor<i32>" */
} sf_print_nodes;

/* Appends a module with one public function @main. Every op has its generic or its simplest pretty
 * form; scopes, phases and names of arguments are kept as locations. State is written as aliasing where
 * the text, the sidecar or the user said it, not where it was inferred. */
void sf_print_stablehlo(const sf_graph *graph, sf_buf *out);
void sf_print_with(const sf_graph *graph, const sf_print_nodes *nodes, sf_buf *out);

/* For sf_print_nodes: the beginning of a line, and "%3:2 = " of a node's results after that; lists of values, and of
 * their types; "dense<...> : tensor<...>"; and the regions of a node that import replaced by a monoid. */
void sf_print_line(sf_printer *p);
void sf_print_results(sf_printer *p, const sf_node *node);
void sf_print_values(sf_printer *p, const sf_value *values, uint32_t count);
void sf_print_types(sf_printer *p, const sf_value *values, uint32_t count);
void sf_print_result_types(sf_printer *p, const sf_node *node);
void sf_print_type(sf_printer *p, const sf_type *type);
void sf_print_dense(sf_printer *p, const sf_dense *dense);
void sf_print_derived_regions(sf_printer *p, const sf_node *node);

#endif
