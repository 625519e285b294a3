#include "op/node_builder.h"

#include <string.h>

#include "base/mem.h"
#include "op/body.h"
#include "op/util.h"

static sf_status check_counts(const sf_op *op, sf_diag *diag)
{
    const sf_opdef *def = op->def;
    if (op->noperands < def->min_operands ||
        (def->max_operands >= 0 && op->noperands > def->max_operands && !def->control)) {
        const char *more = def->max_operands < 0 ? " or more" : "";
        return sf_op_fail(op, diag, "takes %d%s operands, not %d", def->min_operands, more,
                          op->noperands);
    }
    if (op->nregions > def->nregions && def->nregions >= 0)
        return sf_op_fail(op, diag, "takes %d regions, not %d", def->nregions, op->nregions);
    if (def->nresults >= 0 && op->nresults != def->nresults)
        return sf_op_fail(op, diag, "has %d results, not %d", def->nresults, op->nresults);
    return SF_OK;
}

static sf_status check_attrs(const sf_op *op, sf_diag *diag)
{
    for (int i = 0; i < op->def->nattrs; i++) {
        const sf_attrdef *def = &op->def->attrs[i];
        if (!op->attrs[i] && def->required)
            return sf_op_fail(op, diag, "needs the attribute %s", def->name);
        if (op->attrs[i] && op->attrs[i]->kind != def->kind)
            return sf_op_fail(op, diag, "attribute %s is of the wrong kind", def->name);
        /* Words are compared as such, up to a zero byte. */
        if (op->attrs[i] && def->kind == SF_ATTR_TEXT && def->text != SF_AS_CONFIG &&
            strlen(op->attrs[i]->text) != (size_t)op->attrs[i]->count)
            return sf_op_fail(op, diag, "attribute %s has a zero byte", def->name);
    }
    return SF_OK;
}

sf_status sf_infer(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    SF_TRY(check_counts(op, diag));
    SF_TRY(check_attrs(op, diag));
    SF_TRY(op->def->infer(op, out, diag));
    for (int i = 0; i < op->nresults; i++) {
        if (!op->out || op->out[i] == out[i])
            continue;
        char declared[SF_TYPE_TEXT], inferred[SF_TYPE_TEXT];
        return sf_op_fail(op, diag, "result %d is declared as %s, but is %s", i,
                          sf_type_text(op->out[i], declared), sf_type_text(out[i], inferred));
    }
    return SF_OK;
}

enum { FEW = 8 };

sf_status sf_build(sf_graph *graph, sf_block *block, const sf_node_spec *spec, sf_diag *diag,
                   sf_node **out)
{
    /* Nearly every node has few operands and results: those need no memory besides the node's. */
    const sf_type *few[2 * FEW];
    bool is_small = spec->noperands <= FEW && spec->nresults <= FEW;
    const sf_type **in =
        is_small ? few : SF_ARRAY(&graph->arena, spec->noperands + spec->nresults, const sf_type *);
    const sf_type **types = in + spec->noperands;
    for (uint32_t i = 0; i < spec->noperands; i++)
        in[i] = sf_type_of(graph, spec->operands[i]);
    sf_op op = {
        .def = spec->def,
        .noperands = (int)spec->noperands,
        .nresults = (int)spec->nresults,
        .nregions = (int)spec->nregions,
        .in = in,
        .out = spec->types,
        .attrs = spec->attrs,
        .regions = spec->regions,
        .graph = graph,
        .pool = graph->pool,
        .loc = spec->loc,
    };
    SF_TRY(sf_infer(&op, types, diag));
    sf_node_spec built = *spec;
    built.types = types;
    *out = sf_graph_add(graph, block, &built);
    return SF_OK;
}

struct verifier {
    const sf_graph *graph;
    sf_diag *diag;
    bool *known; /* by value id */
};

static sf_status verify_block(struct verifier *v, const sf_block *block);

static sf_status verify_node(struct verifier *v, const sf_node *node)
{
    const sf_type **types =
        sf_alloc((node->noperands + 2 * (size_t)node->nresults) * sizeof(const sf_type *));
    sf_op op = sf_op_of(v->graph, node, types);
    sf_status status = SF_OK;
    for (uint32_t i = 0; i < node->noperands && status == SF_OK; i++)
        if (!v->known[node->operands[i]])
            status = sf_op_fail(&op, v->diag, "operand %u is used before it is made", i);
    if (status == SF_OK)
        status = sf_infer(&op, types + node->noperands + node->nresults, v->diag);
    sf_free(types);
    for (uint32_t i = 0; i < node->nregions && status == SF_OK; i++)
        status = verify_block(v, node->regions[i]);
    for (uint32_t i = 0; i < node->nresults; i++)
        v->known[node->result + i] = true;
    return status;
}

static sf_status verify_block(struct verifier *v, const sf_block *block)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        v->known[block->arguments[i]] = true;
    for (uint32_t i = 0; i < block->nnodes; i++)
        SF_TRY(verify_node(v, v->graph->nodes[block->nodes[i]]));
    for (uint32_t i = 0; i < block->nresults; i++)
        if (!v->known[block->results[i]])
            return sf_fail(v->diag, SF_EINPUT, SF_NOWHERE, "result %u is not made", i);
    return SF_OK;
}

sf_status sf_graph_verify(const sf_graph *graph, sf_diag *diag)
{
    struct verifier v = {graph, diag, sf_alloc(graph->nvalues * sizeof(bool))};
    sf_status status = verify_block(&v, graph->top);
    sf_free(v.known);
    return status;
}

static const sf_opcode monoid_ops[SF_MONOID_COUNT] = {
    [SF_MONOID_NONE] = SF_OP_COUNT,   [SF_MONOID_ADD] = SF_OP_ADD,
    [SF_MONOID_MUL] = SF_OP_MULTIPLY, [SF_MONOID_MIN] = SF_OP_MINIMUM,
    [SF_MONOID_MAX] = SF_OP_MAXIMUM,  [SF_MONOID_AND] = SF_OP_AND,
    [SF_MONOID_OR] = SF_OP_OR,        [SF_MONOID_XOR] = SF_OP_XOR,
    [SF_MONOID_SECOND] = SF_OP_COUNT,
};

sf_opcode sf_op_of_monoid(sf_monoid monoid)
{
    return monoid_ops[monoid];
}

sf_monoid sf_monoid_of_block(const sf_graph *graph, const sf_block *block)
{
    if (block->narguments != 2 || block->nresults != 1)
        return SF_MONOID_NONE;
    sf_value first = block->arguments[0], second = block->arguments[1], result = block->results[0];
    if (result == second)
        return SF_MONOID_SECOND;
    const sf_node *node = sf_maker(graph, result);
    if (!node || node->noperands != 2)
        return SF_MONOID_NONE;
    bool takes_both = (node->operands[0] == first && node->operands[1] == second) ||
                      (node->operands[0] == second && node->operands[1] == first);
    for (int i = 1; takes_both && i < SF_MONOID_COUNT; i++)
        if (monoid_ops[i] != SF_OP_COUNT && sf_is(node, monoid_ops[i]) &&
            sf_monoid_takes((sf_monoid)i, sf_type_of(graph, result)->dtype))
            return (sf_monoid)i;
    return SF_MONOID_NONE;
}
