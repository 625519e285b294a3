/* Building nodes: inference and checks, then sf_graph_add. */
#ifndef SF_OP_NODE_BUILDER_H
#define SF_OP_NODE_BUILDER_H

#include "op/op.h"

/* Checks the spec (operand count, required attributes, kinds), infers the result types and appends
 * the node. spec->types holds the declared types, or is NULL; where inference disagrees with a
 * declaration, that is an error at spec->loc. */
sf_status sf_build(sf_graph *graph, sf_block *block, const sf_node_spec *spec, sf_diag *diag,
                   sf_node **out);

/* Runs only the checks and the inference. `out` holds nresults types. */
sf_status sf_infer(const sf_op *op, const sf_type **out, sf_diag *diag);

/* Checks a whole graph: operands are made before they are used, and every node infers the types it
 * has. Finds our own mistakes, not the user's. */
sf_status sf_graph_verify(const sf_graph *graph, sf_diag *diag);

/* The monoid that a two-argument body computes, or SF_MONOID_NONE. */
sf_monoid sf_monoid_of_block(const sf_graph *graph, const sf_block *block);

/* The op of two operands that combines by the monoid; SF_OP_COUNT where there is none. */
sf_opcode sf_op_of_monoid(sf_monoid monoid);

#endif
