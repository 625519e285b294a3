/* Seeds of sharding propagation: chosen ops, and pinned splits: the products that they decide, and
 * where they begin to propagate. */
#include "ir/name.h"
#include "plan/propagation.h"

sf_status choose_ops(propagation *c)
{
    for (size_t i = 0; i < c->nchosen; i++) {
        const sf_node *node = c->graph->nodes[c->chosen[i].node];
        if (c->chosen[i].axis != c->axis)
            continue;
        sf_strategy strategy = {.kind = SF_RUN_FACTOR,
                                .factor = c->chosen[i].factor,
                                .period =
                                    c->ops[node->id]->factoring.factors[c->chosen[i].factor].size};
        if (!c->has_chosen[node->id] && strategy_fits(c, node, &strategy)) {
            choose_strategy(c, node, strategy);
            continue;
        }
        sf_buf name = {0};
        sf_status status = sf_fail(
            c->diag, SF_EUSAGE, node->loc, "%s cannot be split along %c over axis %s: %s",
            sf_value_name(c->graph, node->result, &name), sf_factor_letter(strategy.factor),
            c->plan->mesh.axes[c->axis].name,
            c->has_chosen[node->id] ? "it is split along another factor over that axis already"
                                    : "pins, or what is split over other axes, leave no room");
        sf_buf_free(&name);
        return status;
    }
    return SF_OK;
}

void propagate_chosen(propagation *c)
{
    for (size_t i = 0; i < c->nchosen; i++)
        if (c->chosen[i].axis == c->axis)
            propagate_from(c, c->graph->nodes[c->chosen[i].node]);
    propagate_splits(c);
}

void list_pinned(propagation *c)
{
    c->of_pin = SF_ARRAY(&c->arena, c->plan->npins, sf_value);
    c->next = SF_ARRAY(&c->arena, c->graph->nvalues, sf_value);
    for (int p = 0; p < c->plan->npins; p++)
        c->of_pin[p] = SF_NONE;
    for (size_t v = c->graph->nvalues; v-- > 0;) {
        if (c->pin[v] < 0 || c->shares[v].kind != SF_SPLIT)
            continue;
        c->next[v] = c->of_pin[c->pin[v]];
        c->of_pin[c->pin[v]] = (sf_value)v;
    }
}

void propagate_pin(propagation *c, int pin)
{
    for (sf_value v = c->of_pin[pin]; v != SF_NONE; v = c->next[v])
        SF_PUSH(&c->arena, c->queue, c->count, c->capacity, v);
    for (sf_value v = c->of_pin[pin]; v != SF_NONE; v = c->next[v])
        for (const held *h = c->held[v]; h; h = h->next)
            propagate_from(c, h->node);
    propagate_splits(c);
}

/* A product that has the pinned split as a batch dimension is run so at once: each rank then
 * multiplies its shard, and only the other operand is resharded. */
static void hold_product(propagation *c, const sf_node *node, uint32_t tensor, sf_share share,
                         sf_value pinned)
{
    const applied *a = c->ops[node->id];
    sf_strategy strategy;
    if (c->has_chosen[node->id] || !sf_is(node, SF_OP_DOT_GENERAL) ||
        !sf_strategy_of_split(&a->factoring, (int)tensor, share, c->parts, &strategy) ||
        !strategy_fits(c, node, &strategy))
        return;
    for (int t = 0; t < 3; t++)
        if (sf_strategy_share(&a->op, &a->factoring, &strategy, t).kind != SF_SPLIT)
            return;
    choose_strategy(c, node, strategy);
    held **end = &c->held[pinned];
    while (*end)
        end = &(*end)->next;
    *end = SF_NEW(&c->arena, held);
    (*end)->node = node;
}

/* The split of the other end of a node with one operand and one result. */
static bool share_across(const propagation *c, const sf_node *node, int from, sf_share *share)
{
    const applied *a = c->ops[node->id];
    sf_strategy strategy;
    if (node->noperands != 1 || node->nresults != 1 ||
        !sf_strategy_of_split(&a->factoring, from, *share, c->parts, &strategy))
        return false;
    *share = sf_strategy_share(&a->op, &a->factoring, &strategy, 1 - from);
    return share->kind == SF_SPLIT;
}

/* Reshapes, transposes and conversions between a tensor and its products. */
enum { MOST_FORMS = 4 };

static void hold_users(propagation *c, sf_value value, sf_share share, sf_value pinned, int forms)
{
    for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++) {
        if (c->uses.at[u].operand == SF_NONE)
            continue;
        const sf_node *node = c->graph->nodes[c->uses.at[u].node];
        sf_share next = share;
        hold_product(c, node, c->uses.at[u].operand, share, pinned);
        if (forms > 0 && share_across(c, node, 0, &next))
            hold_users(c, node->result, next, pinned, forms - 1);
    }
}

static void hold_maker(propagation *c, sf_value value, sf_share share)
{
    sf_value pinned = value;
    const sf_node *node = sf_maker(c->graph, value);
    for (int forms = 0; node && forms < MOST_FORMS; forms++) {
        hold_product(c, node, node->noperands, share, pinned);
        if (!share_across(c, node, 1, &share))
            return;
        node = sf_maker(c->graph, node->operands[0]);
    }
}

void hold_products(propagation *c)
{
    for (size_t v = 0; v < c->graph->nvalues; v++) {
        if (c->pin[v] < 0 || c->shares[v].kind != SF_SPLIT)
            continue;
        hold_users(c, (sf_value)v, c->shares[v], (sf_value)v, MOST_FORMS);
        hold_maker(c, (sf_value)v, c->shares[v]);
    }
}
