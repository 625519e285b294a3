/* From choices to the layouts of the plan along the axis, and back. */
#include "search/axis/axis_builder.h"

static void write_node(const axis_builder *b, const sf_node *node, uint32_t choice)
{
    const sf_node_space *space = &b->space->nodes[node->id];
    sf_layout *layouts = b->plan->nodes[node->id];
    for (uint32_t t = 0; t < space->ntensors; t++) {
        sf_layout others = layouts[t];
        others.axes[b->options->axis] = (sf_share){0};
        axis_fit(b, sf_type_of(b->graph, axis_tensor(node, t)), &others,
                 space->shares[choice * space->ntensors + t], &layouts[t]);
    }
}

/* A barrier hands on what it gets, where that goes with the other axes. */
static void write_barrier(const axis_builder *b, const sf_node *node)
{
    for (uint32_t i = 0; i < node->noperands; i++) {
        sf_value value = node->operands[i];
        const sf_type *type = sf_type_of(b->graph, value);
        sf_layout layout = b->plan->nodes[node->id][i];
        layout.axes[b->options->axis] =
            sf_plan_layout(b->plan, b->graph, value)->axes[b->options->axis];
        if (!sf_layout_fits(&layout, b->mesh, type->rank, type->dims, NULL))
            layout.axes[b->options->axis] = (sf_share){0};
        b->plan->nodes[node->id][i] = b->plan->nodes[node->id][node->noperands + i] = layout;
    }
}

void axis_write_plan(const axis_builder *b, const uint32_t *choice)
{
    const sf_block *top = b->graph->top;
    sf_plan *plan = b->plan;
    int axis = b->options->axis;
    for (uint32_t i = 0; i < top->narguments; i++) {
        sf_layout others = plan->arguments[i];
        others.axes[axis] = (sf_share){0};
        axis_fit(b, sf_type_of(b->graph, top->arguments[i]), &others,
                 b->shares[i].shares[choice[b->arguments[i]]], &plan->arguments[i]);
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = b->graph->nodes[top->nodes[i]];
        if (sf_is_transparent(node))
            write_barrier(b, node);
        else
            write_node(b, node, choice[b->nodes[node->id]]);
    }
    for (uint32_t r = 0; r < top->nresults; r++) {
        if (b->readers->becomes[r] == SF_NONE)
            plan->results[r].axes[axis] = (sf_share){0};
        else
            plan->results[r] = plan->arguments[b->readers->becomes[r]];
    }
}

/* The choice of an end that gives the tensor its layout in the plan; false when there is none. */
static bool choice_in_plan(const axis_builder *b, const axis_end *end, const sf_type *type,
                           const sf_layout *layout, uint32_t k)
{
    sf_layout chosen;
    return axis_fit(b, type, &end->others, end->port.shares[(size_t)k * end->port.stride],
                    &chosen) &&
           sf_layout_equal(&chosen, layout);
}

static bool node_in_plan(const axis_builder *b, const sf_node *node, uint32_t k)
{
    const sf_node_space *space = &b->space->nodes[node->id];
    for (uint32_t t = 0; t < space->ntensors; t++) {
        const sf_layout *layout = &b->plan->nodes[node->id][t];
        axis_end end = {{.stride = space->ntensors, .shares = space->shares + t}, *layout};
        end.others.axes[b->options->axis] = (sf_share){0};
        if (!choice_in_plan(b, &end, sf_type_of(b->graph, axis_tensor(node, t)), layout, k))
            return false;
    }
    return true;
}

void axis_read_plan(const axis_builder *b, bool *known, uint32_t *choice)
{
    const sf_block *top = b->graph->top;
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = b->graph->nodes[top->nodes[i]];
        uint32_t variable = b->nodes[node->id];
        for (uint32_t k = b->variables[variable].count; k-- > 0;)
            if (node_in_plan(b, node, k)) {
                known[variable] = true;
                choice[variable] = k;
            }
    }
    for (uint32_t i = top->narguments; i-- > 0;) {
        axis_end end = axis_made(b, top->arguments[i]);
        for (uint32_t k = end.port.count; k-- > 0;)
            if (choice_in_plan(b, &end, sf_type_of(b->graph, top->arguments[i]),
                               &b->plan->arguments[i], k)) {
                known[end.port.variable] = true;
                choice[end.port.variable] = k;
            }
    }
}

bool axis_is_whole(const axis_builder *b)
{
    const sf_block *top = b->graph->top;
    int axis = b->options->axis;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = b->graph->nodes[top->nodes[i]];
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
            if (b->plan->nodes[node->id][t].axes[axis].kind != SF_REPLICATED)
                return false;
    }
    return true;
}
