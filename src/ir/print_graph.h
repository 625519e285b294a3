/* Printing a graph as StableHLO text that reads back as the same graph. */
#ifndef SF_IR_PRINT_GRAPH_H
#define SF_IR_PRINT_GRAPH_H

#include "ir/graph.h"

/* Appends a module with one public function @main. Every op has its generic or its simplest pretty
 * form; scopes, phases and names of arguments are kept as locations. State is written as aliasing where
 * the text or the user said it, not where it was inferred. */
void sf_print_stablehlo(const sf_graph *graph, sf_buf *out);

#endif
