#include "op/op.h"
#include "op/slots.h"
#include "prog/program.h"

static void set_ends(const sf_node *node, const sf_mesh *mesh, int rank, sf_exchange *out)
{
    int peer = 0;
    if (sf_is_message(node)) {
        const sf_attr *arrived = node->attrs[SF_MESSAGE_ARRIVED];
        peer = (int)node->attrs[SF_MESSAGE_PEER]->integer;
        out->arrived = arrived ? arrived->integer : 0;
    } else if (mesh && out->axes >> mesh->naxes == 0)
        peer = sf_group_swapped(mesh, out->axes, rank);
    out->to = sf_is(node, SF_OP_RECEIVE) ? -1 : peer;
    out->from = sf_is(node, SF_OP_SEND) ? -1 : peer;
}

sf_exchange sf_exchange_of(const sf_node *node, const sf_mesh *mesh, int rank)
{
    sf_exchange exchange = {.kind = sf_is_message(node) ? SF_PERMUTE : sf_op_collective(node->def),
                            .axes = (sf_axes)node->attrs[SF_COLLECTIVE_AXES]->integer,
                            .size = (int)node->attrs[SF_COLLECTIVE_SIZE]->integer,
                            .number = node->attrs[SF_COLLECTIVE_NUMBER]->integer,
                            .what = ""};
    if (sf_is_between_groups(node))
        exchange.groups = (uint64_t)node->attrs[SF_COLLECTIVE_GROUPS]->integer;
    if (node->attrs[SF_COLLECTIVE_WHAT])
        exchange.what = node->attrs[SF_COLLECTIVE_WHAT]->text;
    if (sf_collective_get(exchange.kind)->reduces)
        exchange.monoid = (sf_monoid)node->attrs[SF_COLLECTIVE_BODY]->integer;
    if (exchange.kind == SF_PERMUTE)
        set_ends(node, mesh, rank, &exchange);
    return exchange;
}

const char *sf_exchange_name(const sf_exchange *exchange)
{
    if (sf_is_one_way(exchange))
        return exchange->to >= 0 ? "send" : "receive";
    return sf_collective_name(exchange->kind);
}

sf_part_origin sf_exchange_part(const sf_exchange *exchange, uint32_t part)
{
    return exchange->parts ? exchange->parts[part] : (sf_part_origin){exchange->number, part};
}

int64_t sf_exchange_stride(const sf_inst *inst, uint32_t part)
{
    for (int side = 0; side < 2; side++) {
        const sf_view *view = side == 0 && part < inst->nin    ? &inst->in[part]
                              : side == 1 && part < inst->nout ? &inst->out[part]
                                                               : NULL;
        if (view && !sf_view_is_contiguous(view))
            return view->strides[0];
    }
    return 0;
}
