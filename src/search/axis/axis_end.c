/* The ends of edges: who makes a value, and who reads it. */
#include "search/axis/axis_builder.h"

static axis_end end_at(const axis_builder *b, axis_port port, const sf_layout *layout)
{
    axis_end end = {port, *layout};
    end.others.axes[b->options->axis] = (sf_share){0};
    return end;
}

static axis_end end_at_node(const axis_builder *b, const sf_node *node, uint32_t tensor)
{
    const sf_node_space *space = &b->space->nodes[node->id];
    axis_port port = {.variable = b->nodes[node->id],
                      .count = space->nstrategies,
                      .stride = space->ntensors,
                      .shares = space->shares + tensor};
    return end_at(b, port, &b->plan->nodes[node->id][tensor]);
}

static axis_end end_at_argument(const axis_builder *b, uint32_t argument)
{
    axis_port port = {.variable = b->arguments[argument],
                      .count = b->shares[argument].nshares,
                      .stride = 1,
                      .shares = b->shares[argument].shares};
    return end_at(b, port, &b->plan->arguments[argument]);
}

static axis_end end_at_whole(const axis_builder *b, const sf_layout *layout)
{
    axis_port port = {.variable = b->fixed, .count = 1, .stride = 1, .shares = &b->whole};
    return end_at(b, port, layout);
}

axis_end axis_made(const axis_builder *b, sf_value value)
{
    const sf_value_info *info = &b->graph->values[value];
    if (info->node == SF_NONE)
        return end_at_argument(b, info->index);
    const sf_node *node = b->graph->nodes[info->node];
    return end_at_node(b, node, node->noperands + info->index);
}

axis_end axis_read(const axis_builder *b, sf_reader use)
{
    static const sf_layout replicated;
    if (use.node == SF_NONE && b->readers->becomes[use.operand] != SF_NONE)
        return end_at_argument(b, b->readers->becomes[use.operand]);
    if (use.node == SF_NONE)
        return end_at_whole(b, &b->plan->results[use.operand]);
    if (use.operand == SF_NONE)
        return end_at_whole(b, &replicated);
    return end_at_node(b, b->graph->nodes[use.node], use.operand);
}

sf_phase axis_phase(const axis_builder *b, sf_reader use)
{
    if (use.node != SF_NONE)
        return b->graph->nodes[use.node]->phase;
    const sf_node *maker = sf_maker(b->graph, b->graph->top->results[use.operand]);
    return maker ? maker->phase : SF_UPDATE;
}
