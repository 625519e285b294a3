#include "op/control/scanned.h"

#include "op/op.h"

static bool keeps_dim(const sf_graph *graph, sf_value whole, sf_value slice, int dim)
{
    return dim < 0 || sf_type_of(graph, slice)->dims[dim] == sf_type_of(graph, whole)->dims[dim];
}

static bool takes_slice(const sf_graph *graph, const sf_node *node, sf_value value, int dim)
{
    return sf_is(node, SF_OP_DYNAMIC_SLICE) && keeps_dim(graph, value, node->result, dim);
}

static bool puts_slice(const sf_graph *graph, const sf_node *node, sf_value value, int dim)
{
    return sf_is(node, SF_OP_DYNAMIC_UPDATE_SLICE) && node->operands[1] != value &&
           keeps_dim(graph, value, node->operands[1], dim);
}

static bool reads_value(const sf_node *node, sf_value value)
{
    for (uint32_t o = 0; o < node->noperands; o++)
        if (node->operands[o] == value)
            return true;
    return false;
}

bool sf_reads_slices(const sf_graph *graph, const sf_node *node, sf_value value, int dim)
{
    return node->operands[0] == value &&
           (takes_slice(graph, node, value, dim) || puts_slice(graph, node, value, dim));
}

enum { UNREAD, SLICED, READ };

static int how_read(const sf_graph *graph, const sf_block *block, sf_value value, int dim)
{
    int how = UNREAD;
    for (uint32_t i = 0; i < block->nnodes && how != READ; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        if (!reads_value(node, value))
            continue;
        how = sf_reads_slices(graph, node, value, dim) ? SLICED : READ;
    }
    return how;
}

bool sf_is_scanned(const sf_graph *graph, const sf_node *node, uint32_t operand, int dim)
{
    uint32_t first = sf_first_entering(node);
    bool any = false;
    if (operand < first)
        return false;
    for (uint32_t r = 0; r < node->nregions; r++) {
        const sf_block *block = node->regions[r];
        int how = how_read(graph, block, block->arguments[operand - first], dim);
        if (how == READ)
            return false;
        any = any || how == SLICED;
    }
    return any;
}
