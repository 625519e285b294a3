#include "plan/propagate.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/intern.h"
#include "base/mem.h"
#include "ir/name.h"
#include "op/control/scanned.h"
#include "plan/propagation.h"

static size_t size_of_types(const sf_op *op)
{
    return (size_t)(op->noperands + op->nresults) * sizeof *op->in;
}

static size_t size_of_attrs(const sf_op *op)
{
    return (size_t)op->def->nattrs * sizeof *op->attrs;
}

static uint64_t hash_op(const sf_op *op)
{
    uint64_t hash = sf_hash_mix((uint64_t)op->def->id, (uint64_t)op->noperands);
    for (int i = 0; i < op->noperands + op->nresults; i++)
        hash = sf_hash_mix(hash, (uint64_t)(uintptr_t)op->in[i]);
    for (int i = 0; i < op->def->nattrs; i++)
        hash = sf_hash_mix(hash, (uint64_t)(uintptr_t)op->attrs[i]);
    return hash;
}

static bool is_same_op(const void *item, const void *key)
{
    const sf_op *a = &((const applied *)item)->op, *b = key;
    return a->def == b->def && a->noperands == b->noperands && a->nresults == b->nresults &&
           memcmp(a->in, b->in, size_of_types(a)) == 0 &&
           (a->def->nattrs == 0 || memcmp(a->attrs, b->attrs, size_of_attrs(a)) == 0);
}

static const applied *apply_op(propagation *c, const sf_op *op)
{
    applied *a = SF_NEW(&c->arena, applied);
    const sf_type **types = sf_arena_copy(&c->arena, op->in, size_of_types(op));
    a->op = *op;
    a->op.in = types;
    a->op.out = types + op->noperands;
    sf_op_factors(&a->op, &c->arena, &a->factoring);
    return a;
}

/* Layers repeat, so there are few different nodes. A node with regions equals no other; the
 * strategies of settled nodes are not needed. */
static void apply_ops(propagation *c)
{
    const sf_graph *graph = c->graph;
    sf_interner seen = {0};
    sf_arena scratch = {0};
    c->ops = SF_ARRAY(&c->arena, graph->nnodes, const applied *);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (is_settled(c, node))
            continue;
        sf_mark mark = sf_arena_mark(&scratch);
        sf_op op = sf_op_of(graph, node,
                            SF_ARRAY(&scratch, node->noperands + node->nresults, const sf_type *));
        if (node->nregions > 0) {
            c->ops[node->id] = apply_op(c, &op);
        } else {
            sf_intern_slot *slot = sf_intern_find(&seen, &c->arena, hash_op(&op), is_same_op, &op);
            if (!slot->item)
                slot->item = apply_op(c, &op);
            c->ops[node->id] = slot->item;
        }
        sf_arena_reset(&scratch, mark);
    }
    sf_arena_free(&scratch);
}

static void look_at_ops(propagation *c)
{
    apply_ops(c);
    c->uses = sf_uses_of(c->graph, &c->arena);
    c->is_fixed = sf_find_fixed(c->graph, &c->arena);
}

/* Where a pin gives no period: all of the dimension, or the unit of the innermost earlier axis. */
static sf_share with_period(const propagation *c, const sf_layout *earlier, const sf_type *type,
                            sf_share share)
{
    if (share.kind != SF_SPLIT || share.period != 0 || share.dim >= type->rank)
        return share;
    share.period =
        sf_layout_period(earlier, &c->plan->mesh, c->axis, share.dim, type->dims[share.dim]);
    return share;
}

static sf_status pin_value(propagation *c, const sf_names *names, int number, sf_value value)
{
    const sf_pin *pin = &c->plan->pins[number];
    const sf_type *type = sf_type_of(c->graph, value);
    const sf_layout *earlier = made_as(c, value);
    char why[SF_WHY_TEXT];
    sf_share share = with_period(c, earlier, type, sf_pin_share(pin, type));
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

/* Fixed shares of rules. Their pins come first, so numbers agree. */
static sf_status obey_rules(propagation *c, const sf_names *names)
{
    c->fixed = sf_rules_along(&c->rules, c->axis, c->grant, c->plan, &c->arena);
    for (sf_value v = 0; c->fixed.pin && v < c->graph->nvalues; v++)
        if (c->fixed.pin[v] >= 0)
            SF_TRY(pin_value(c, names, c->fixed.pin[v], v));
    return SF_OK;
}

/* Gives the values that a pin of a recipe matches their share, unless an earlier pin did, or forbids it. */
static sf_status obey_pin(propagation *c, const sf_names *names, int number)
{
    const sf_pin *pin = &c->plan->pins[number];
    size_t count;
    const sf_named **found = sf_names_match(names, pin->pattern, &c->arena, &count);
    for (size_t i = 0; i < count; i++)
        for (sf_value v = found[i]->first; v != SF_NONE; v = sf_named_next(names, found[i], v))
            if (!c->known[v] &&
                !sf_is_banned(&c->fixed, v, sf_pin_share(pin, sf_type_of(c->graph, v))))
                SF_TRY(pin_value(c, names, number, v));
    return SF_OK;
}

static void begin_axis(propagation *c)
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

/* A split that propagated to an argument may be one that an earlier axis has taken: then it is of
 * the remaining part, or none. */
static sf_share share_of_argument(const propagation *c, sf_value argument)
{
    const sf_layout *earlier = made_as(c, argument);
    const sf_type *type = sf_type_of(c->graph, argument);
    sf_share share = c->shares[argument];
    if (share_fits_value(c, earlier, type, share, NULL))
        return share;
    share.period = 0;
    share = with_period(c, earlier, type, share);
    return share_fits_value(c, earlier, type, share, NULL) ? share : (sf_share){0};
}

static void end_axis(propagation *c)
{
    choose_free(c);
    for (uint32_t i = 0; i < c->graph->top->narguments; i++)
        c->plan->arguments[i].axes[c->axis] = share_of_argument(c, c->graph->top->arguments[i]);
    choose_rest(c);
    share_gathers(c);
}

static sf_status propagate_axis(propagation *c, const sf_names *names)
{
    sf_mark mark = sf_arena_mark(&c->arena);
    begin_axis(c);
    SF_TRY(obey_rules(c, names));
    for (int p = c->plan->nrules; p < c->plan->npins; p++)
        if (c->plan->pins[p].axis == c->axis)
            SF_TRY(obey_pin(c, names, p));
    SF_TRY(choose_ops(c));
    hold_products(c);
    list_pinned(c);
    propagate_chosen(c);
    for (int p = 0; p < c->plan->npins; p++)
        propagate_pin(c, p);
    end_axis(c);
    sf_arena_reset(&c->arena, mark);
    return SF_OK;
}

static sf_status propagate_axes(propagation *c, const sf_names *names, int grant)
{
    c->grant = grant;
    for (c->axis = 0; c->axis < c->plan->mesh.naxes; c->axis++)
        SF_TRY(propagate_axis(c, names));
    return SF_OK;
}

static void forget_layouts(propagation *c)
{
    memset(c->plan->arguments, 0, c->graph->top->narguments * sizeof *c->plan->arguments);
    for (uint32_t i = 0; i < c->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        uint32_t count = node->noperands + node->nresults;
        if (count > 0)
            memset(c->plan->nodes[node->id], 0, count * sizeof **c->plan->nodes);
    }
}

/* Preferences may be satisfied by the other pins; if not, the first possible axis is chosen. */
static sf_status complete_preferences(propagation *c, const sf_names *names)
{
    int broken = 0;
    for (int grant = -1; grant < c->plan->mesh.naxes; grant++) {
        if (grant >= 0)
            forget_layouts(c);
        SF_TRY(propagate_axes(c, names, grant < 0 ? SF_GRANT_NONE : grant));
        broken = sf_rules_broken(&c->rules, c->plan);
        if (broken < 0)
            return SF_OK;
    }
    return sf_fail(c->diag, SF_EUSAGE, SF_NOWHERE, "pin \"%s\" does not come true along any axis",
                   c->plan->pins[broken].text);
}

static sf_status propagate_plan(propagation *c)
{
    const sf_graph *graph = c->graph;
    sf_plan *plan = c->plan;
    sf_names names = sf_names_of(graph, &c->arena);
    SF_TRY(sf_rules_new(graph, &names, &plan->mesh, plan->nrules, plan->pins, &c->arena, c->diag,
                        &c->rules));
    sf_plan_mark_pins(plan, &names);
    look_at_ops(c);
    SF_TRY(c->rules.npreferences > 0 ? complete_preferences(c, &names)
                                     : propagate_axes(c, &names, SF_GRANT_NONE));
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            plan->results[graph->arguments[i].next] = plan->arguments[i];
    return SF_OK;
}

sf_status sf_plan_propagate(const sf_graph *graph, sf_plan *plan, sf_diag *diag)
{
    return sf_plan_propagate_chosen(graph, plan, 0, NULL, diag);
}

sf_status sf_plan_propagate_chosen(const sf_graph *graph, sf_plan *plan, size_t count,
                                   const sf_chosen *chosen, sf_diag *diag)
{
    propagation c = {
        .graph = graph, .plan = plan, .nchosen = count, .chosen = chosen, .diag = diag};
    sf_status status = propagate_plan(&c);
    sf_arena_free(&c.arena);
    return status;
}

/* Given ends */

/* The batch; carried values of a loop, invariant ones, and those that it takes or makes in slices. */
enum { DATA, FLOWS, GIVEN, SCANNED };

/* Whether all that read the value take, or put in, slices of it; and some do. */
static bool is_read_in_slices(const propagation *c, sf_value value)
{
    bool any = false;
    for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++) {
        uint32_t reader = c->uses.at[u].node;
        if (reader == SF_NONE || c->uses.at[u].operand == SF_NONE)
            continue;
        if (!sf_reads_slices(c->graph, c->graph->nodes[reader], value, -1))
            return false;
        any = true;
    }
    return any;
}

static int kind_of_argument(const propagation *c, uint32_t argument)
{
    const sf_block *top = c->graph->top;
    uint32_t next = c->graph->arguments[argument].next;
    if (c->graph->arguments[argument].role == SF_ROLE_BATCH)
        return DATA;
    if (is_read_in_slices(c, top->arguments[argument]))
        return SCANNED;
    return next == SF_NONE || top->results[next] == top->arguments[argument] ? GIVEN : FLOWS;
}

static void propagate_given(propagation *c, int kind)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        if (c->shares[top->arguments[i]].kind == SF_SPLIT && kind_of_argument(c, i) == kind)
            SF_PUSH(&c->arena, c->queue, c->count, c->capacity, top->arguments[i]);
    propagate_splits(c);
}

/* From the settled nodes to their operands and readers. */
static void propagate_settled(propagation *c)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (!is_settled(c, node))
            continue;
        c->has_chosen[node->id] = true;
        for (uint32_t r = 0; r < node->nresults; r++) {
            sf_share share = c->plan->nodes[node->id][node->noperands + r].axes[c->axis];
            c->known[node->result + r] = true;
            c->shares[node->result + r] = share;
            if (share.kind == SF_SPLIT)
                SF_PUSH(&c->arena, c->queue, c->count, c->capacity, node->result + r);
        }
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (is_settled(c, node))
            propagate_from(c, node);
    }
    propagate_splits(c);
}

static void propagate_given_axis(propagation *c)
{
    const sf_block *top = c->graph->top;
    sf_mark mark = sf_arena_mark(&c->arena);
    begin_axis(c);
    for (uint32_t i = 0; i < top->narguments; i++) {
        c->known[top->arguments[i]] = true;
        c->shares[top->arguments[i]] = c->plan->arguments[i].axes[c->axis];
    }
    propagate_settled(c);
    for (int kind = DATA; kind <= SCANNED; kind++)
        propagate_given(c, kind);
    for (uint32_t i = 0; i < top->nresults; i++) {
        sf_share share = c->plan->results[i].axes[c->axis];
        if (share.kind == SF_SPLIT)
            know_share(c, top->results[i], share);
    }
    propagate_splits(c);
    end_axis(c);
    sf_arena_reset(&c->arena, mark);
}

sf_status sf_plan_propagate_around(const sf_graph *graph, sf_plan *plan, const bool *fixed,
                                   sf_diag *diag)
{
    propagation c = {.graph = graph, .plan = plan, .settled = fixed, .diag = diag};
    look_at_ops(&c);
    for (c.axis = 0; c.axis < plan->mesh.naxes; c.axis++)
        propagate_given_axis(&c);
    sf_arena_free(&c.arena);
    return SF_OK;
}
