#include "op/carry.h"

static unsigned way_of(sf_opcode op)
{
    switch ((int)op) {
    case SF_OP_OPTIMIZATION_BARRIER:
        return SF_CARRIES_ALIKE;
    case SF_OP_CONVERT:
        return SF_CARRIES_TYPE;
    case SF_OP_RESHAPE:
        return SF_CARRIES_SHAPE;
    case SF_OP_TRANSPOSE:
        return SF_CARRIES_ORDER;
    case SF_OP_SLICE:
        return SF_CARRIES_PART;
    case SF_OP_DYNAMIC_SLICE:
        return SF_CARRIES_CHOICE;
    case SF_OP_BROADCAST_IN_DIM:
        return SF_CARRIES_COPIES;
    default:
        return 0;
    }
}

bool sf_carries(const sf_node *node, unsigned ways)
{
    return node && (way_of((sf_opcode)node->def->id) & ways) != 0;
}
