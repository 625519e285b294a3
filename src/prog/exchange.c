#include "op/op.h"
#include "op/slots.h"
#include "prog/program.h"

sf_exchange sf_exchange_of(const sf_node *node, const sf_mesh *mesh, int rank)
{
    sf_exchange exchange = {.kind = sf_op_collective(node->def),
                            .axes = (sf_axes)node->attrs[SF_COLLECTIVE_AXES]->integer,
                            .size = (int)node->attrs[SF_COLLECTIVE_SIZE]->integer,
                            .number = node->attrs[SF_COLLECTIVE_NUMBER]->integer,
                            .what = ""};
    if (node->attrs[SF_COLLECTIVE_WHAT])
        exchange.what = node->attrs[SF_COLLECTIVE_WHAT]->text;
    if (exchange.kind == SF_ALL_REDUCE || exchange.kind == SF_REDUCE_SCATTER)
        exchange.monoid = (sf_monoid)node->attrs[SF_COLLECTIVE_BODY]->integer;
    if (exchange.kind == SF_PERMUTE && mesh && exchange.axes >> mesh->naxes == 0)
        exchange.peer = sf_group_swapped(mesh, exchange.axes, rank);
    return exchange;
}
