#include "plan/complete.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "ir/name.h"
#include "ir/uses.h"
#include "op/op.h"
#include "op/scanned.h"
#include "plan/rules.h"
#include "shard/strategy.h"

/* What is known of a node before any axis is looked at. */
typedef struct applied {
    sf_op op;
    sf_factoring factoring;
} applied;

/* A product that a pinned value decides, see hold_product. */
typedef struct held {
    const sf_node *node;
    struct held *next; /* another that the same value decides */
} held;

typedef struct completion {
    const sf_graph *graph;
    sf_plan *plan;
    sf_diag *diag;
    sf_arena arena;
    applied *ops; /* by node id */
    sf_uses uses;
    bool *is_free; /* by node id: depends on constants alone */
    sf_rules rules;
    int grant; /* of wishes, see plan/rules.h */

    int axis, parts;  /* of the axis at hand: */
    sf_fixed fixed;   /* by rules */
    sf_share *shares; /* by value: what it should be, where `known` */
    bool *known;
    int *pin;         /* by value: the pin that `shares` is from, or -1 */
    sf_value *of_pin; /* by pin: the values that are split by it, as a list, */
    sf_value *next;   /* which goes on here, by value */
    bool *has_chosen; /* by node id: plan->nodes is filled for this axis */
    held **held;      /* by value: the products that it decides */
    sf_value *queue;
    size_t head, count, capacity;
} completion;

static void apply_op_pins(completion *c)
{
    const sf_graph *graph = c->graph;
    c->ops = SF_ARRAY(&c->arena, graph->nnodes, applied);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        applied *a = &c->ops[node->id];
        const sf_type **types =
            SF_ARRAY(&c->arena, node->noperands + node->nresults, const sf_type *);
        a->op = sf_op_of(graph, node, types);
        sf_op_factors(&a->op, &c->arena, &a->factoring);
    }
}

static void find_free(completion *c)
{
    c->is_free = SF_ARRAY(&c->arena, c->graph->nnodes, bool);
    for (uint32_t i = 0; i < c->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        bool all = node->nregions == 0;
        for (uint32_t o = 0; all && o < node->noperands; o++) {
            const sf_node *maker = sf_maker(c->graph, node->operands[o]);
            all = maker && c->is_free[maker->id];
        }
        c->is_free[node->id] = all;
    }
}

static void look_at_ops(completion *c)
{
    apply_op_pins(c);
    c->uses = sf_uses_of(c->graph, &c->arena);
    find_free(c);
}

/* The layouts of a value or an operand as far as earlier axes go. */
static sf_layout *made_as(const completion *c, sf_value value)
{
    const sf_value_info *info = &c->graph->values[value];
    if (info->node == SF_NONE)
        return &c->plan->arguments[info->index];
    return &c->plan->nodes[info->node][c->graph->nodes[info->node]->noperands + info->index];
}

static bool share_fits_value(const completion *c, const sf_layout *earlier, const sf_type *type,
                             sf_share share, char *why)
{
    sf_layout layout = *earlier;
    layout.axes[c->axis] = share;
    return sf_layout_fits(&layout, &c->plan->mesh, type->rank, type->dims, why);
}

static void know_share(completion *c, sf_value value, sf_share share)
{
    if (c->known[value] || sf_is_banned(&c->fixed, value, share))
        return;
    c->known[value] = true;
    c->shares[value] = share;
    if (share.kind == SF_SPLIT)
        SF_PUSH(&c->arena, c->queue, c->count, c->capacity, value);
}

/* Where a pin gives no period: all of the dimension, or the unit of the innermost earlier axis. */
static sf_share with_period(const completion *c, const sf_layout *earlier, const sf_type *type,
                            sf_share share)
{
    if (share.kind != SF_SPLIT || share.period != 0 || share.dim >= type->rank)
        return share;
    share.period =
        sf_layout_period(earlier, &c->plan->mesh, c->axis, share.dim, type->dims[share.dim]);
    return share;
}

static sf_status pin_value(completion *c, const sf_names *names, int number, sf_value value)
{
    const sf_pin *pin = &c->plan->pins[number];
    const sf_type *type = sf_type_of(c->graph, value);
    const sf_layout *earlier = made_as(c, value);
    char why[SF_WHY_TEXT];
    sf_share share = with_period(c, earlier, type, pin->share);
    if (share_fits_value(c, earlier, type, share, why)) {
        c->known[value] = true;
        c->shares[value] = share;
        c->pin[value] = number;
        return SF_OK;
    }
    bool is_one_of_many = strpbrk(pin->pattern, "*?") && type->rank == 0;
    if (names->is_scope[value] || is_one_of_many)
        return SF_OK;
    char text[SF_TYPE_TEXT];
    return sf_fail(c->diag, SF_EUSAGE, SF_NOWHERE, "pin \"%s\": %s, %s, does not fit: %s",
                   pin->text, names->values[value], sf_type_text(type, text), why);
}

/* What rules fix. Their pins come first, so numbers agree. */
static sf_status obey_rules(completion *c, const sf_names *names)
{
    c->fixed = sf_rules_along(&c->rules, c->axis, c->grant, c->plan, &c->arena);
    for (sf_value v = 0; c->fixed.pin && v < c->graph->nvalues; v++)
        if (c->fixed.pin[v] >= 0)
            SF_TRY(pin_value(c, names, c->fixed.pin[v], v));
    return SF_OK;
}

/* Gives the values that a pin of a recipe matches their share, unless an earlier pin did, or forbids it. */
static sf_status obey_pin(completion *c, const sf_names *names, int number)
{
    const sf_pin *pin = &c->plan->pins[number];
    size_t count;
    const sf_named **found = sf_names_match(names, pin->pattern, &c->arena, &count);
    for (size_t i = 0; i < count; i++)
        for (sf_value v = found[i]->first; v != SF_NONE; v = names->same[v])
            if (!c->known[v] && !sf_is_banned(&c->fixed, v, pin->share))
                SF_TRY(pin_value(c, names, number, v));
    return SF_OK;
}

/* Whether rules forbid that a tensor of the node has the share; of arguments, ops may read slices. */
static bool is_forbidden(const completion *c, const sf_node *node, uint32_t tensor, sf_share share)
{
    sf_value value = tensor < node->noperands ? node->operands[tensor]
                                              : node->result + (tensor - node->noperands);
    return c->graph->values[value].node != SF_NONE && sf_is_banned(&c->fixed, value, share);
}

static bool strategy_fits(const completion *c, const sf_node *node, const sf_strategy *strategy)
{
    const applied *a = &c->ops[node->id];
    const sf_layout *layouts = c->plan->nodes[node->id];
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++) {
        const sf_type *type = t < node->noperands ? a->op.in[t] : a->op.out[t - node->noperands];
        sf_share share = sf_strategy_share(&a->op, &a->factoring, strategy, (int)t);
        if (!share_fits_value(c, &layouts[t], type, share, NULL) || is_forbidden(c, node, t, share))
            return false;
    }
    return true;
}

/* What a loop takes slice by slice, such as the parameters of its layers, or makes so, such as their gradients, stays
 * in the pieces that it is said to be wanted in: each turn gathers, or reduces, its own slice. */
static void keep_scanned(completion *c, const sf_node *node, uint32_t operand)
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

static void choose_strategy(completion *c, const sf_node *node, sf_strategy strategy)
{
    const applied *a = &c->ops[node->id];
    bool nests = node->def->control != SF_CONTROL_NONE;
    c->has_chosen[node->id] = true;
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++) {
        sf_share share = sf_strategy_share(&a->op, &a->factoring, &strategy, (int)t);
        if (share.kind != SF_REPLICATED || !nests)
            c->plan->nodes[node->id][t].axes[c->axis] = share;
    }
}

/* Lets the splits of a chosen node's tensors spread. */
static void spread_from(completion *c, const sf_node *node)
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
static void pass_through(completion *c, const sf_node *node, uint32_t tensor, sf_share share)
{
    uint32_t n = node->noperands, o = tensor % n;
    sf_layout *layouts = c->plan->nodes[node->id];
    if (layouts[o].axes[c->axis].kind != SF_REPLICATED || is_forbidden(c, node, o, share) ||
        is_forbidden(c, node, n + o, share) ||
        !share_fits_value(c, &layouts[o], sf_type_of(c->graph, node->operands[o]), share, NULL))
        return;
    layouts[o].axes[c->axis] = layouts[n + o].axes[c->axis] = share;
    if (share.kind == SF_SPLIT) {
        know_share(c, node->operands[o], share);
        know_share(c, node->result + o, share);
    }
}

/* A loop holds many ops: those that a split reaches run by it, beside others that run by another. */
static bool may_run_beside(const completion *c, const sf_node *node, const sf_strategy *strategy)
{
    const applied *a = &c->ops[node->id];
    const sf_layout *layouts = c->plan->nodes[node->id];
    if (node->def->control == SF_CONTROL_NONE)
        return false;
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
        if (sf_strategy_share(&a->op, &a->factoring, strategy, (int)t).kind != SF_REPLICATED &&
            layouts[t].axes[c->axis].kind != SF_REPLICATED)
            return false;
    return true;
}

static void spread_to_node(completion *c, const sf_node *node, uint32_t tensor, sf_share share)
{
    if (sf_is_transparent(node)) {
        pass_through(c, node, tensor, share);
        return;
    }
    const applied *a = &c->ops[node->id];
    sf_strategy strategy;
    if (!c->is_free[node->id] &&
        sf_strategy_of_split(&a->factoring, (int)tensor, share, c->parts, &strategy) &&
        (!c->has_chosen[node->id] || may_run_beside(c, node, &strategy)) &&
        strategy_fits(c, node, &strategy)) {
        choose_strategy(c, node, strategy);
        spread_from(c, node);
    }
}

static void spread_splits(completion *c)
{
    while (c->head < c->count) {
        sf_value value = c->queue[c->head++];
        sf_share share = c->shares[value];
        const sf_node *maker = sf_maker(c->graph, value);
        if (maker)
            spread_to_node(c, maker, maker->noperands + (value - maker->result), share);
        for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++)
            if (c->uses.at[u].operand != SF_NONE)
                spread_to_node(c, c->graph->nodes[c->uses.at[u].node], c->uses.at[u].operand,
                               share);
    }
}

static void list_pinned(completion *c)
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

static void spread_pin(completion *c, int pin)
{
    for (sf_value v = c->of_pin[pin]; v != SF_NONE; v = c->next[v])
        SF_PUSH(&c->arena, c->queue, c->count, c->capacity, v);
    for (sf_value v = c->of_pin[pin]; v != SF_NONE; v = c->next[v])
        for (const held *h = c->held[v]; h; h = h->next)
            spread_from(c, h->node);
    spread_splits(c);
}

/* A product that has the pinned split as a batch dimension is run so at once: each rank then multiplies
 * with what it holds, and only the other operand moves. */
static void hold_product(completion *c, const sf_node *node, uint32_t tensor, sf_share share,
                         sf_value pinned)
{
    const applied *a = &c->ops[node->id];
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
static bool share_across(const completion *c, const sf_node *node, int from, sf_share *share)
{
    const applied *a = &c->ops[node->id];
    sf_strategy strategy;
    if (node->noperands != 1 || node->nresults != 1 ||
        !sf_strategy_of_split(&a->factoring, from, *share, c->parts, &strategy))
        return false;
    *share = sf_strategy_share(&a->op, &a->factoring, &strategy, 1 - from);
    return share->kind == SF_SPLIT;
}

/* Reshapes, transposes and conversions between a tensor and its products. */
enum { MOST_FORMS = 4 };

static void hold_users(completion *c, sf_value value, sf_share share, sf_value pinned, int forms)
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

static void hold_maker(completion *c, sf_value value, sf_share share)
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

static void hold_products(completion *c)
{
    for (size_t v = 0; v < c->graph->nvalues; v++) {
        if (c->pin[v] < 0 || c->shares[v].kind != SF_SPLIT)
            continue;
        hold_users(c, (sf_value)v, c->shares[v], (sf_value)v, MOST_FORMS);
        hold_maker(c, (sf_value)v, c->shares[v]);
    }
}

/* The one split that all users want a value in; false when they differ. */
static bool wanted_by_all(const completion *c, sf_value value, sf_share *out)
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

static void choose_free(completion *c)
{
    for (uint32_t i = c->graph->top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(c->graph, i);
        const applied *a = &c->ops[node->id];
        sf_share share;
        sf_strategy strategy;
        if (c->is_free[node->id] && node->nresults == 1 && wanted_by_all(c, node->result, &share) &&
            sf_strategy_of_split(&a->factoring, (int)node->noperands, share, c->parts, &strategy) &&
            strategy_fits(c, node, &strategy))
            choose_strategy(c, node, strategy);
    }
}

static int64_t value_bytes(const completion *c, sf_value value)
{
    return sf_type_bytes(sf_type_of(c->graph, value));
}

/* Whether an operand may join those that are partial: replicated, it becomes a partial sum for nothing, as
 * the first rank's share. That is only of use where the result goes on to one place, to meet other partial
 * sums there: x + a + b + c with a, b and c partial is then reduced once. */
static bool may_join(const completion *c, const sf_node *node, uint32_t operand)
{
    return made_as(c, node->operands[operand])->axes[c->axis].kind == SF_REPLICATED &&
           !c->has_chosen[node->id] && node->nresults == 1 &&
           sf_uses_count(&c->uses, node->result) == 1;
}

/* Whether partial operands in `partial`, and no others but those that may join them, make a partial
 * result. */
static bool goes_with(const completion *c, const sf_node *node, uint32_t mask, uint32_t partial)
{
    if ((mask & partial) != partial)
        return false;
    for (uint32_t o = 0; o < node->noperands; o++)
        if ((mask & ~partial) >> o & 1 && !may_join(c, node, o))
            return false;
    return true;
}

/* Whether the node is linear in its partial operands, is their only user, and makes no more of them. */
static bool passes_partial(const completion *c, const sf_node *node, sf_strategy *out)
{
    const applied *a = &c->ops[node->id];
    uint32_t partial = 0;
    int64_t before = 0, after = 0;
    if (node->noperands > 32 || !a->op.def->linear)
        return false;
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value value = node->operands[o];
        sf_share share = made_as(c, value)->axes[c->axis];
        if (share.kind != SF_PARTIAL)
            continue;
        if (share.monoid != SF_MONOID_ADD || sf_uses_count(&c->uses, value) != 1)
            return false;
        partial |= 1u << o;
        before += value_bytes(c, value);
    }
    for (uint32_t r = 0; r < node->nresults; r++)
        after += value_bytes(c, node->result + r);
    uint32_t masks[SF_MAX_LINEAR];
    int count = partial ? a->op.def->linear(&a->op, masks) : 0;
    for (int i = 0; i < count && after <= before; i++)
        if (goes_with(c, node, masks[i], partial)) {
            *out = (sf_strategy){.kind = SF_RUN_LINEAR, .mask = masks[i]};
            return true;
        }
    return false;
}

static void pass_partials(completion *c, const sf_node *node)
{
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value value = node->operands[o];
        sf_share share = made_as(c, value)->axes[c->axis];
        if (share.kind == SF_PARTIAL && sf_uses_count(&c->uses, value) == 1)
            pass_through(c, node, o, share);
    }
}

/* Also where a split has spread to the node: reducing its partial operands to that split would take a
 * collective for each, behind it one is enough. */
static void choose_rest(completion *c)
{
    for (uint32_t i = 0; i < c->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        sf_strategy strategy = {.kind = SF_RUN_WHOLE};
        if (sf_is_transparent(node))
            pass_partials(c, node);
        else if (passes_partial(c, node, &strategy) || !c->has_chosen[node->id])
            choose_strategy(c, node, strategy);
        for (uint32_t o = 0; node->def->control != SF_CONTROL_NONE && o < node->noperands; o++)
            keep_scanned(c, node, o);
    }
}

static void begin_axis(completion *c)
{
    size_t nvalues = c->graph->nvalues, nnodes = c->graph->nnodes;
    c->parts = c->plan->mesh.axes[c->axis].size;
    c->shares = SF_ARRAY(&c->arena, nvalues, sf_share);
    c->known = SF_ARRAY(&c->arena, nvalues, bool);
    c->pin = SF_ARRAY(&c->arena, nvalues, int);
    memset(c->pin, -1, nvalues * sizeof *c->pin);
    c->has_chosen = SF_ARRAY(&c->arena, nnodes, bool);
    c->queue = NULL;
    c->head = c->count = c->capacity = 0;
    c->held = SF_ARRAY(&c->arena, nvalues, held *);
}

static void end_axis(completion *c)
{
    choose_free(c);
    for (uint32_t i = 0; i < c->graph->top->narguments; i++)
        c->plan->arguments[i].axes[c->axis] = c->shares[c->graph->top->arguments[i]];
    choose_rest(c);
}

static sf_status complete_axis(completion *c, const sf_names *names)
{
    sf_mark mark = sf_arena_mark(&c->arena);
    begin_axis(c);
    SF_TRY(obey_rules(c, names));
    for (int p = c->plan->nrules; p < c->plan->npins; p++)
        if (c->plan->pins[p].axis == c->axis)
            SF_TRY(obey_pin(c, names, p));
    hold_products(c);
    list_pinned(c);
    for (int p = 0; p < c->plan->npins; p++)
        spread_pin(c, p);
    end_axis(c);
    sf_arena_reset(&c->arena, mark);
    return SF_OK;
}

static sf_status complete_axes(completion *c, const sf_names *names, int grant)
{
    c->grant = grant;
    for (c->axis = 0; c->axis < c->plan->mesh.naxes; c->axis++)
        SF_TRY(complete_axis(c, names));
    return SF_OK;
}

static void forget_layouts(completion *c)
{
    memset(c->plan->arguments, 0, c->graph->top->narguments * sizeof *c->plan->arguments);
    for (uint32_t i = 0; i < c->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        uint32_t count = node->noperands + node->nresults;
        if (count > 0)
            memset(c->plan->nodes[node->id], 0, count * sizeof **c->plan->nodes);
    }
}

/* Wishes may come true by what the other pins lead to; if not, the first axis that can is asked. */
static sf_status complete_wishes(completion *c, const sf_names *names)
{
    int broken = 0;
    for (int grant = -1; grant < c->plan->mesh.naxes; grant++) {
        if (grant >= 0)
            forget_layouts(c);
        SF_TRY(complete_axes(c, names, grant < 0 ? SF_GRANT_NONE : grant));
        broken = sf_rules_broken(&c->rules, c->plan);
        if (broken < 0)
            return SF_OK;
    }
    return sf_fail(c->diag, SF_EUSAGE, SF_NOWHERE, "pin \"%s\" does not come true along any axis",
                   c->plan->pins[broken].text);
}

static sf_status complete_plan(completion *c)
{
    const sf_graph *graph = c->graph;
    sf_plan *plan = c->plan;
    sf_names names = sf_names_of(graph, &c->arena);
    SF_TRY(sf_rules_new(graph, &names, &plan->mesh, plan->nrules, plan->pins, &c->arena, c->diag,
                        &c->rules));
    sf_plan_mark_pins(plan, &names);
    look_at_ops(c);
    SF_TRY(c->rules.nwishes > 0 ? complete_wishes(c, &names)
                                : complete_axes(c, &names, SF_GRANT_NONE));
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            plan->results[graph->arguments[i].next] = plan->arguments[i];
    return SF_OK;
}

sf_status sf_plan_complete(const sf_graph *graph, sf_plan *plan, sf_diag *diag)
{
    completion c = {.graph = graph, .plan = plan, .diag = diag};
    sf_status status = complete_plan(&c);
    sf_arena_free(&c.arena);
    return status;
}

/* Given ends */

/* What flows through a loop, what it is only given, and what it takes or makes in slices. */
enum { FLOWS, GIVEN, SCANNED };

static int kind_of_argument(const completion *c, uint32_t argument)
{
    const sf_block *top = c->graph->top;
    uint32_t next = c->graph->arguments[argument].next;
    if (sf_is_scanned_in(c->graph, top, argument, -1))
        return SCANNED;
    return next == SF_NONE || top->results[next] == top->arguments[argument] ? GIVEN : FLOWS;
}

static void spread_given(completion *c, int kind)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        if (c->shares[top->arguments[i]].kind == SF_SPLIT && kind_of_argument(c, i) == kind)
            SF_PUSH(&c->arena, c->queue, c->count, c->capacity, top->arguments[i]);
    spread_splits(c);
}

static void complete_given_axis(completion *c)
{
    const sf_block *top = c->graph->top;
    sf_mark mark = sf_arena_mark(&c->arena);
    begin_axis(c);
    for (uint32_t i = 0; i < top->narguments; i++) {
        c->known[top->arguments[i]] = true;
        c->shares[top->arguments[i]] = c->plan->arguments[i].axes[c->axis];
    }
    for (int kind = FLOWS; kind <= SCANNED; kind++)
        spread_given(c, kind);
    for (uint32_t i = 0; i < top->nresults; i++) {
        sf_share share = c->plan->results[i].axes[c->axis];
        if (share.kind == SF_SPLIT)
            know_share(c, top->results[i], share);
    }
    spread_splits(c);
    end_axis(c);
    sf_arena_reset(&c->arena, mark);
}

sf_status sf_plan_complete_given(const sf_graph *graph, sf_plan *plan, sf_diag *diag)
{
    completion c = {.graph = graph, .plan = plan, .diag = diag};
    look_at_ops(&c);
    for (c.axis = 0; c.axis < plan->mesh.naxes; c.axis++)
        complete_given_axis(&c);
    sf_arena_free(&c.arena);
    return SF_OK;
}
