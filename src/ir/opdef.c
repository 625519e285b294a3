#include "ir/opdef.h"

sf_op sf_op_of(const sf_graph *graph, const sf_node *node, const sf_type **types)
{
    for (uint32_t i = 0; i < node->noperands; i++)
        types[i] = sf_type_of(graph, node->operands[i]);
    for (uint32_t i = 0; i < node->nresults; i++)
        types[node->noperands + i] = sf_type_of(graph, node->result + i);
    return (sf_op){
        .def = node->def,
        .noperands = (int)node->noperands,
        .nresults = (int)node->nresults,
        .nregions = (int)node->nregions,
        .in = types,
        .out = types + node->noperands,
        .attrs = node->attrs,
        .regions = node->regions,
        .graph = graph,
        .pool = graph->pool,
        .loc = node->loc,
    };
}

double sf_op_flops(const sf_op *op)
{
    return op->def->flops ? op->def->flops(op) : 0;
}

double sf_op_bytes(const sf_op *op)
{
    if (op->def->bytes)
        return op->def->bytes(op);
    double bytes = 0;
    for (int i = 0; i < op->noperands; i++)
        bytes += (double)sf_type_bytes(op->in[i]);
    for (int i = 0; i < op->nresults; i++)
        bytes += (double)sf_type_bytes(op->out[i]);
    return bytes;
}

int sf_attr_slot(const sf_opdef *def, sf_str name)
{
    for (int i = 0; i < def->nattrs; i++)
        if (sf_str_is(name, def->attrs[i].name))
            return i;
    return -1;
}

bool sf_node_has_effect(const sf_graph *graph, const sf_node *node)
{
    const sf_attr *effect = node->def->effect ? node->attrs[node->def->effect - 1] : NULL;
    if (effect && effect->integer)
        return true;
    for (uint32_t i = 0; i < node->nregions; i++)
        for (uint32_t j = 0; j < node->regions[i]->nnodes; j++)
            if (sf_node_has_effect(graph, graph->nodes[node->regions[i]->nodes[j]]))
                return true;
    return false;
}
