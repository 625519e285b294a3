/* Who reads a value, and as what. Barriers are seen through: their results are their operands. */
#include <string.h>

#include "ir/uses.h"
#include "search/axis/build.h"

static void find_top(axis_builder *b)
{
    const sf_block *top = b->graph->top;
    b->is_top = SF_ARRAY(&b->arena, b->graph->nvalues, bool);
    for (uint32_t i = 0; i < top->narguments; i++)
        b->is_top[top->arguments[i]] = true;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = b->graph->nodes[top->nodes[i]];
        for (uint32_t r = 0; r < node->nresults; r++)
            b->is_top[node->result + r] = true;
    }
}

/* Whether readers beyond the use find the value itself: a barrier only hands it on. */
static bool hands_on(const axis_builder *b, sf_value_use use)
{
    return use.node != SF_NONE && use.operand != SF_NONE &&
           sf_is_transparent(b->graph->nodes[use.node]);
}

typedef void visit_use(axis_builder *b, sf_value value, axis_use use);

static void count_use(axis_builder *b, sf_value value, axis_use use)
{
    (void)use;
    b->first_use[value + 2]++;
}

static void note_use(axis_builder *b, sf_value value, axis_use use)
{
    b->uses[b->first_use[value + 1]++] = use;
}

/* Values of nested blocks are the business of these alone. */
static void visit_uses(axis_builder *b, const sf_uses *uses, visit_use *visit)
{
    const sf_block *top = b->graph->top;
    for (size_t v = 0; v < b->graph->nvalues; v++)
        for (uint32_t u = uses->first[v]; b->is_top[v] && u < uses->first[v + 1]; u++)
            if (uses->at[u].node != SF_NONE && !hands_on(b, uses->at[u]))
                visit(b, axis_origin(b, (sf_value)v),
                      (axis_use){uses->at[u].node, uses->at[u].operand});
    for (uint32_t r = 0; r < top->nresults; r++)
        visit(b, axis_origin(b, top->results[r]), (axis_use){SF_NONE, r});
}

void axis_find_uses(axis_builder *b)
{
    const sf_graph *graph = b->graph;
    const sf_block *top = graph->top;
    sf_uses uses = sf_uses_of(graph, &b->arena);
    find_top(b);
    b->first_use = SF_ARRAY(&b->arena, graph->nvalues + 2, uint32_t);
    visit_uses(b, &uses, count_use);
    for (size_t v = 2; v < graph->nvalues + 2; v++)
        b->first_use[v] += b->first_use[v - 1];
    b->uses = SF_ARRAY(&b->arena, b->first_use[graph->nvalues + 1], axis_use);
    visit_uses(b, &uses, note_use);
    b->becomes = SF_ARRAY(&b->arena, top->nresults, uint32_t);
    memset(b->becomes, 0xff, top->nresults * sizeof *b->becomes);
    for (uint32_t i = 0; i < top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            b->becomes[graph->arguments[i].next] = i;
}

sf_value axis_origin(const axis_builder *b, sf_value value)
{
    for (;;) {
        const sf_node *maker = sf_maker(b->graph, value);
        if (!maker || !sf_is_transparent(maker))
            return value;
        value = maker->operands[value - maker->result];
    }
}

static axis_end end_of(const axis_builder *b, axis_port port, const sf_layout *layout)
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
    return end_of(b, port, &b->plan->nodes[node->id][tensor]);
}

static axis_end end_at_argument(const axis_builder *b, uint32_t argument)
{
    axis_port port = {.variable = b->arguments[argument],
                      .count = b->shares[argument].nshares,
                      .stride = 1,
                      .shares = b->shares[argument].shares};
    return end_of(b, port, &b->plan->arguments[argument]);
}

static axis_end end_at_whole(const axis_builder *b, const sf_layout *layout)
{
    axis_port port = {.variable = b->fixed, .count = 1, .stride = 1, .shares = &b->whole};
    return end_of(b, port, layout);
}

axis_end axis_made(const axis_builder *b, sf_value value)
{
    const sf_value_info *info = &b->graph->values[value];
    if (info->node == SF_NONE)
        return end_at_argument(b, info->index);
    const sf_node *node = b->graph->nodes[info->node];
    return end_at_node(b, node, node->noperands + info->index);
}

axis_end axis_read(const axis_builder *b, axis_use use)
{
    static const sf_layout replicated;
    if (use.node == SF_NONE && b->becomes[use.operand] != SF_NONE)
        return end_at_argument(b, b->becomes[use.operand]);
    if (use.node == SF_NONE)
        return end_at_whole(b, &b->plan->results[use.operand]);
    if (use.operand == SF_NONE)
        return end_at_whole(b, &replicated);
    return end_at_node(b, b->graph->nodes[use.node], use.operand);
}

sf_phase axis_phase(const axis_builder *b, axis_use use)
{
    if (use.node != SF_NONE)
        return b->graph->nodes[use.node]->phase;
    const sf_node *maker = sf_maker(b->graph, b->graph->top->results[use.operand]);
    return maker ? maker->phase : SF_UPDATE;
}
