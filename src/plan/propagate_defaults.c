/* Defaults for values that no split has reached. */
#include "op/control/scanned.h"
#include "plan/propagation.h"

/* The one split that all users want a value in; false when they differ. */
static bool wanted_by_all(const propagation *c, sf_value value, sf_share *out)
{
    uint32_t first = c->uses.first[value], end = c->uses.first[value + 1];
    for (uint32_t u = first; u < end; u++) {
        sf_value_use use = c->uses.at[u];
        if (use.operand == SF_NONE || !c->has_chosen[use.node])
            return false;
        sf_share want = c->plan->nodes[use.node][use.operand].axes[c->axis];
        if (want.kind != SF_SPLIT || (u > first && !sf_share_equal(want, *out)))
            return false;
        *out = want;
    }
    return first < end;
}

void choose_free(propagation *c)
{
    for (uint32_t i = c->graph->top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(c->graph, i);
        const applied *a = c->ops[node->id];
        sf_share share;
        sf_strategy strategy;
        if (!is_settled(c, node) && c->is_fixed[node->id] && node->nresults == 1 &&
            wanted_by_all(c, node->result, &share) &&
            sf_strategy_of_split(&a->factoring, (int)node->noperands, share, c->parts, &strategy) &&
            strategy_fits(c, node, &strategy))
            choose_strategy(c, node, strategy);
    }
}

static int64_t value_bytes(const propagation *c, sf_value value)
{
    return sf_type_bytes(sf_type_of(c->graph, value));
}

/* Whether an operand may join those that are partial: replicated, it becomes a partial sum for nothing, as
 * the first rank's share. That is only of use where the result goes on to one place, to meet other partial
 * sums there: x + a + b + c with a, b and c partial is then reduced once. */
static bool may_join(const propagation *c, const sf_node *node, uint32_t operand)
{
    return made_as(c, node->operands[operand])->axes[c->axis].kind == SF_REPLICATED &&
           !c->has_chosen[node->id] && node->nresults == 1 &&
           sf_uses_count(&c->uses, node->result) == 1;
}

/* Whether partial operands in `partial`, and no others but those that may join them, make a partial
 * result. */
static bool goes_with(const propagation *c, const sf_node *node, uint32_t mask, uint32_t partial)
{
    if ((mask & partial) != partial)
        return false;
    for (uint32_t o = 0; o < node->noperands; o++)
        if ((mask & ~partial) >> o & 1 && !may_join(c, node, o))
            return false;
    return true;
}

/* Whether the node is linear in its partial operands, is their only user, and makes no more of them. */
static bool passes_partial(const propagation *c, const sf_node *node, sf_strategy *out)
{
    const applied *a = c->ops[node->id];
    uint32_t partial = 0;
    int64_t before = 0, after = 0;
    if (node->noperands > 32 || !node->def->linear)
        return false;
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value value = node->operands[o];
        if (!c->is_partial[value])
            continue;
        sf_share share = made_as(c, value)->axes[c->axis];
        if (share.monoid != SF_MONOID_ADD || sf_uses_count(&c->uses, value) != 1)
            return false;
        partial |= 1u << o;
        before += value_bytes(c, value);
    }
    if (!partial)
        return false;
    for (uint32_t r = 0; r < node->nresults; r++)
        after += value_bytes(c, node->result + r);
    uint32_t masks[SF_MAX_LINEAR];
    int count = a->op.def->linear(&a->op, masks);
    for (int i = 0; i < count && after <= before; i++)
        if (goes_with(c, node, masks[i], partial)) {
            *out = (sf_strategy){.kind = SF_RUN_LINEAR, .mask = masks[i]};
            return true;
        }
    return false;
}

static void pass_partials(propagation *c, const sf_node *node)
{
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value value = node->operands[o];
        if (c->is_partial[value] && sf_uses_count(&c->uses, value) == 1)
            pass_through(c, node, o, made_as(c, value)->axes[c->axis]);
    }
}

/* A tensor that a loop reads slice by slice, such as the parameters of its layers, or writes so,
 * such as their gradients, keeps its sharded layout: each iteration gathers, or reduces, its own
 * slice. */
static void keep_scanned(propagation *c, const sf_node *node, uint32_t operand)
{
    sf_layout *layouts = c->plan->nodes[node->id];
    bool carried = operand < node->nresults && node->def->control == SF_CONTROL_LOOP;
    bool sums = layouts[operand].axes[c->axis].kind == SF_PARTIAL;
    sf_value value = sums ? node->result + operand : node->operands[operand];
    bool is_said = c->pin[value] >= 0 || !sf_maker(c->graph, value);
    sf_share share = is_said && c->known[value] ? c->shares[value] : (sf_share){0};
    if (layouts[operand].axes[c->axis].kind == SF_SPLIT || share.kind != SF_SPLIT ||
        !sf_is_scanned(c->graph, node, operand, share.dim) ||
        !share_fits_value(c, &layouts[operand], sf_type_of(c->graph, value), share, NULL))
        return;
    layouts[operand].axes[c->axis] = share;
    if (carried)
        layouts[node->noperands + operand].axes[c->axis] = share;
}

/* Also if a split has propagated to the node: to reduce its partial operands to that split would
 * take a collective for each, after it one is enough. */
static void choose_rest_of(propagation *c, const sf_node *node)
{
    sf_strategy strategy = {.kind = SF_RUN_WHOLE};
    if (sf_is_transparent(node))
        pass_partials(c, node);
    else if (passes_partial(c, node, &strategy) || !c->has_chosen[node->id])
        choose_strategy(c, node, strategy);
    for (uint32_t o = 0; node->def->control != SF_CONTROL_NONE && o < node->noperands; o++)
        keep_scanned(c, node, o);
}

static void note_partial(const propagation *c, sf_value value)
{
    c->is_partial[value] = made_as(c, value)->axes[c->axis].kind == SF_PARTIAL;
}

/* Partial values are marked once at their maker: their readers would search the whole plan. */
void choose_rest(propagation *c)
{
    const sf_block *top = c->graph->top;
    c->is_partial = SF_ARRAY(&c->arena, c->graph->nvalues, bool);
    for (uint32_t i = 0; i < top->narguments; i++)
        note_partial(c, top->arguments[i]);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (!is_settled(c, node))
            choose_rest_of(c, node);
        for (uint32_t r = 0; r < node->nresults; r++)
            note_partial(c, node->result + r);
    }
}

/* How all others than the node want the value: SF_REPLICATED or not; false where there are none. */
static bool others_want_whole(const propagation *c, sf_value value, uint32_t but, bool all)
{
    bool any = false;
    for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++) {
        sf_value_use use = c->uses.at[u];
        if (use.node == but)
            continue;
        bool wants = use.operand != SF_NONE && !sf_is_transparent(c->graph->nodes[use.node]) &&
                     c->plan->nodes[use.node][use.operand].axes[c->axis].kind == SF_REPLICATED;
        if (all && !wants)
            return false;
        any = any || wants;
    }
    return any;
}

/* A transpose that splits reached, of an argument that somebody else wants whole, and whose own readers do: it is that of the
 * whole, which costs nothing, so that one gather is enough for both (an embedding that is the last product's weight as well). */
void share_gathers(propagation *c)
{
    for (uint32_t i = 0; i < c->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (is_settled(c, node) || !sf_is(node, SF_OP_TRANSPOSE) ||
            sf_maker(c->graph, node->operands[0]) || c->pin[node->result] >= 0)
            continue;
        sf_layout *layouts = c->plan->nodes[node->id];
        if (layouts[0].axes[c->axis].kind == SF_SPLIT &&
            others_want_whole(c, node->operands[0], node->id, false) &&
            others_want_whole(c, node->result, SF_NONE, true))
            layouts[0].axes[c->axis] = layouts[1].axes[c->axis] = (sf_share){0};
    }
}
