/* The table of ops: every op the library knows, by number and by name. */
#ifndef SF_OP_OP_H
#define SF_OP_OP_H

#include "base/collective.h"
#include "ir/opdef.h"

typedef enum sf_opcode {
#define SF_OP(id, symbol) SF_OP_##id,
#include "op/ops.def"
#undef SF_OP
    SF_OP_COUNT
} sf_opcode;

const sf_opdef *sf_opdef_get(sf_opcode code);

/* By dialect and name ("stablehlo", "add"); by HLO opcode ("add"). NULL when there is none. */
const sf_opdef *sf_opdef_find(sf_str dialect, sf_str name);
const sf_opdef *sf_opdef_find_hlo(sf_str opcode);

/* The known op whose name is nearest, for "did you mean"; NULL when none is near. */
const sf_opdef *sf_opdef_nearest(sf_str name);

static inline bool sf_is(const sf_node *node, sf_opcode code)
{
    return node->def->id == (int)code;
}

/* Matrix products and convolutions. */
static inline bool sf_is_product(const sf_opdef *def)
{
    return def->cost == SF_COST_PRODUCT;
}

/* A warning that the step cannot be run here, if it calls an unknown function. */
void sf_warn_strangers(const sf_graph *graph, sf_diag *diag);

/* One of those in op/collective_ops.c; and which. */
bool sf_is_collective(const sf_node *node);

/* Whether it is one between groups of a pipeline: an op of the steps of these groups, no move of a tensor. */
bool sf_is_between_groups(const sf_node *node);
bool sf_is_message(const sf_node *node); /* a send or a receive */
sf_collective sf_op_collective(const sf_opdef *def);
const sf_opdef *sf_opdef_of_collective(sf_collective kind); /* NULL where there is none */

#endif
