/* Splits propagate from op to op. */
#include "plan/propagation.h"

/* The layouts of a value or an operand as far as earlier axes go. */
sf_layout *made_as(const propagation *c, sf_value value)
{
    const sf_value_info *info = &c->graph->values[value];
    if (info->node == SF_NONE)
        return &c->plan->arguments[info->index];
    return &c->plan->nodes[info->node][c->graph->nodes[info->node]->noperands + info->index];
}

bool share_fits_value(const propagation *c, const sf_layout *earlier, const sf_type *type,
                      sf_share share, char *why)
{
    sf_layout layout = *earlier;
    layout.axes[c->axis] = share;
    return sf_layout_fits(&layout, &c->plan->mesh, type->rank, type->dims, why);
}

void know_share(propagation *c, sf_value value, sf_share share)
{
    if (c->known[value] || sf_is_banned(&c->fixed, value, share))
        return;
    c->known[value] = true;
    c->shares[value] = share;
    if (share.kind == SF_SPLIT)
        SF_PUSH(&c->arena, c->queue, c->count, c->capacity, value);
}

/* Whether rules forbid that a tensor of the node has the share; of arguments, ops may read slices. */
static bool is_forbidden(const propagation *c, const sf_node *node, uint32_t tensor, sf_share share)
{
    sf_value value = tensor < node->noperands ? node->operands[tensor]
                                              : node->result + (tensor - node->noperands);
    return c->graph->values[value].node != SF_NONE && sf_is_banned(&c->fixed, value, share);
}

bool strategy_fits(const propagation *c, const sf_node *node, const sf_strategy *strategy)
{
    const applied *a = c->ops[node->id];
    const sf_layout *layouts = c->plan->nodes[node->id];
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++) {
        const sf_type *type = t < node->noperands ? a->op.in[t] : a->op.out[t - node->noperands];
        sf_share share = sf_strategy_share(&a->op, &a->factoring, strategy, (int)t);
        if (!share_fits_value(c, &layouts[t], type, share, NULL) || is_forbidden(c, node, t, share))
            return false;
    }
    return true;
}

void choose_strategy(propagation *c, const sf_node *node, sf_strategy strategy)
{
    const applied *a = c->ops[node->id];
    bool nests = node->def->control != SF_CONTROL_NONE;
    c->has_chosen[node->id] = true;
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++) {
        sf_share share = sf_strategy_share(&a->op, &a->factoring, &strategy, (int)t);
        if (share.kind != SF_REPLICATED || !nests)
            c->plan->nodes[node->id][t].axes[c->axis] = share;
    }
}

/* Propagates the splits of a chosen node's tensors. */
void propagate_from(propagation *c, const sf_node *node)
{
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++) {
        sf_share share = c->plan->nodes[node->id][t].axes[c->axis];
        if (share.kind == SF_SPLIT)
            know_share(c,
                       t < node->noperands ? node->operands[t] : node->result + t - node->noperands,
                       share);
    }
}

/* Through a transparent node, from operand to result or back. */
void pass_through(propagation *c, const sf_node *node, uint32_t tensor, sf_share share)
{
    uint32_t n = node->noperands, o = tensor % n;
    sf_layout *layouts = c->plan->nodes[node->id];
    if (is_settled(c, node) || layouts[o].axes[c->axis].kind != SF_REPLICATED ||
        is_forbidden(c, node, o, share) || is_forbidden(c, node, n + o, share) ||
        !share_fits_value(c, &layouts[o], sf_type_of(c->graph, node->operands[o]), share, NULL))
        return;
    layouts[o].axes[c->axis] = layouts[n + o].axes[c->axis] = share;
    if (share.kind == SF_SPLIT) {
        know_share(c, node->operands[o], share);
        know_share(c, node->result + o, share);
    }
}

/* A loop holds many ops: those that a split reaches run by it, beside others that run by another. */
static bool may_run_beside(const propagation *c, const sf_node *node, const sf_strategy *strategy)
{
    const applied *a = c->ops[node->id];
    const sf_layout *layouts = c->plan->nodes[node->id];
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
        if (sf_strategy_share(&a->op, &a->factoring, strategy, (int)t).kind != SF_REPLICATED &&
            layouts[t].axes[c->axis].kind != SF_REPLICATED)
            return false;
    return true;
}

static void propagate_to_node(propagation *c, const sf_node *node, uint32_t tensor, sf_share share)
{
    if (sf_is_transparent(node)) {
        pass_through(c, node, tensor, share);
        return;
    }
    bool has_run = c->has_chosen[node->id], nests = node->def->control != SF_CONTROL_NONE;
    if (is_settled(c, node) || c->is_fixed[node->id] || (has_run && !nests))
        return;
    const applied *a = c->ops[node->id];
    sf_strategy strategy;
    if (sf_strategy_of_split(&a->factoring, (int)tensor, share, c->parts, &strategy) &&
        (!has_run || may_run_beside(c, node, &strategy)) && strategy_fits(c, node, &strategy)) {
        choose_strategy(c, node, strategy);
        propagate_from(c, node);
    }
}

void propagate_splits(propagation *c)
{
    while (c->head < c->count) {
        sf_value value = c->queue[c->head++];
        sf_share share = c->shares[value];
        const sf_node *maker = sf_maker(c->graph, value);
        if (maker)
            propagate_to_node(c, maker, maker->noperands + (value - maker->result), share);
        for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++)
            if (c->uses.at[u].operand != SF_NONE)
                propagate_to_node(c, c->graph->nodes[c->uses.at[u].node], c->uses.at[u].operand,
                                  share);
    }
}
