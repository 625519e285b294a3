#include "api/primitive/backward_of.h"

#include <string.h>

#include "api/primitive/backward_search.h"
#include "op/slots.h"
#include "op/util.h"

typedef struct values {
    size_t count, capacity;
    sf_value *at;
} values;

static void add_value(backward_search *l, values *list, sf_value value)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i] == value)
            return;
    SF_PUSH(l->arena, list->at, list->count, list->capacity, value);
}

static void mark_module(backward_search *l)
{
    for (uint32_t i = 0; i < l->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(l->graph, i);
        l->within[node->id] =
            node->phase == SF_BACKWARD && sf_is_in_module(node->scope->path, l->part->module);
    }
}

/* Sums: of incoming gradients, which are not of the part, and of values that only the part has
 * made, which are. */
static void settle_sums(backward_search *l)
{
    for (uint32_t i = 0; i < l->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(l->graph, i);
        if (!sf_is(node, SF_OP_ADD) || node->phase != SF_BACKWARD)
            continue;
        if (backward_comes_in(l, node->operands[0]) && backward_comes_in(l, node->operands[1]))
            l->within[node->id] = false;
        if (backward_is_within(l, node->operands[0]) && backward_is_within(l, node->operands[1]))
            l->within[node->id] = true;
    }
}

/* Sums whose values leave, or go into such sums alone. */
static void mark_sums(backward_search *l)
{
    for (uint32_t i = l->graph->top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(l->graph, i);
        bool sum = sf_is(node, SF_OP_ADD) && l->within[node->id];
        for (uint32_t u = l->uses.first[node->result]; sum && u < l->uses.first[node->result + 1];
             u++) {
            uint32_t reader = l->uses.at[u].node;
            sum = reader == SF_NONE || !l->within[reader] || l->sums[reader];
        }
        l->sums[node->id] = sum;
    }
}

/* The other terms of a sum. */
static void list_others(backward_search *l, sf_value sum, values *out)
{
    values todo = {0};
    SF_PUSH(l->arena, todo.at, todo.count, todo.capacity, sum);
    while (todo.count > 0) {
        sf_value value = todo.at[--todo.count];
        const sf_node *node = sf_maker(l->graph, value);
        if (backward_comes_in(l, value))
            SF_PUSH(l->arena, out->at, out->count, out->capacity, value);
        for (uint32_t o = 0; node && l->sums[node->id] && o < node->noperands; o++)
            SF_PUSH(l->arena, todo.at, todo.count, todo.capacity, node->operands[o]);
    }
}

static void list_ends(backward_search *l, values *in, values *out)
{
    for (uint32_t i = 0; i < l->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(l->graph, i);
        if (!l->within[node->id])
            continue;
        for (uint32_t o = 0; o < node->noperands && !l->sums[node->id]; o++)
            if (backward_comes_in(l, node->operands[o]))
                add_value(l, in, node->operands[o]);
        for (sf_value v = node->result; v < node->result + node->nresults; v++)
            for (uint32_t u = l->uses.first[v]; u < l->uses.first[v + 1]; u++)
                if (l->uses.at[u].node == SF_NONE || !l->within[l->uses.at[u].node])
                    add_value(l, out, v);
    }
}

static const sf_type *type_of(const backward_search *l, sf_value value)
{
    return sf_type_of(l->graph, value);
}

static int count_of_type(const backward_search *l, const sf_value *list, size_t count,
                         const sf_type *type)
{
    int found = 0;
    for (size_t i = 0; i < count; i++)
        found += list[i] != SF_NONE && type_of(l, list[i]) == type;
    return found;
}

static sf_status fail_unclear(const backward_search *l, const char *what, const sf_type *type,
                              int found, int wanted)
{
    const char *module = l->part->module;
    char text[SF_TYPE_TEXT];
    sf_fail(l->diag, SF_EMISMATCH, l->loc,
            "the backward pass of %s%s has %d gradients of %s %s, and the %s %d: which is which "
            "cannot be told",
            module ? "" : "the subgraph in ", module ? module : l->part->scope->path, found,
            sf_type_text(type, text), what, module ? "module" : "subgraph", wanted);
    return sf_hint(l->diag, "replace %s with all that reads the same, or without its gradients",
                   module ? "a module" : "a larger subgraph, or a module,");
}

/* The gradient of an input that is that of a result, which others read as well: there is no value in whose place another could be. */
static sf_status check_handed_on(const backward_search *l, const sf_backward_part *backward)
{
    for (int i = 0, g = 0; i < l->part->ninputs; i++) {
        const sf_type *type = type_of(l, l->part->inputs[i]);
        if (!sf_is_float(type->dtype) || backward->gradients[g++].value != SF_NONE)
            continue;
        for (int c = 0; c < backward->ncotangents; c++)
            for (uint32_t u = l->uses.first[backward->cotangents[c]];
                 u < l->uses.first[backward->cotangents[c] + 1]; u++) {
                uint32_t reader = l->uses.at[u].node;
                if (type_of(l, backward->cotangents[c]) != type || reader == SF_NONE ||
                    l->within[reader])
                    continue;
                sf_fail(l->diag, SF_EMISMATCH, l->loc,
                        "the gradient of input %d of the subgraph in %s is that of its result, as "
                        "it is: it cannot be replaced",
                        i + 1, l->part->scope->path);
                return sf_hint(l->diag, "replace a larger subgraph, or a module");
            }
    }
    return SF_OK;
}

/* Takes the one value of the type out of the list; one that may be missing where `may_lack`. */
static sf_status take_of_type(const backward_search *l, values *list, const sf_value *all,
                              size_t nall, sf_value like, bool may_lack, const char *what,
                              sf_value *out)
{
    const sf_type *type = type_of(l, like);
    int found = count_of_type(l, list->at, list->count, type);
    int wanted = count_of_type(l, all, nall, type);
    *out = SF_NONE;
    if (found == 0 && may_lack)
        return SF_OK;
    if (found != 1 || wanted != 1)
        return fail_unclear(l, what, type, found, wanted);
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i] != SF_NONE && type_of(l, list->at[i]) == type) {
            *out = list->at[i];
            list->at[i] = SF_NONE;
        }
    return SF_OK;
}

static bool is_real(const backward_search *l, sf_value value)
{
    return sf_is_float(type_of(l, value)->dtype);
}

/* If inputs are added, one value is the gradient of both. A broadcast input's gradient is read by
 * the sum that undoes the broadcast. */
static uint32_t find_undoing(const backward_search *l, sf_value gradient, sf_value input)
{
    const sf_node *maker = sf_maker(l->graph, input);
    uint32_t found = SF_NONE;
    if (!maker || !sf_is(maker, SF_OP_BROADCAST_IN_DIM))
        return SF_NONE;
    for (uint32_t u = l->uses.first[gradient]; u < l->uses.first[gradient + 1]; u++) {
        uint32_t reader = l->uses.at[u].node;
        if (reader == SF_NONE || l->within[reader] ||
            !sf_is(l->graph->nodes[reader], SF_OP_REDUCE) ||
            type_of(l, l->graph->nodes[reader]->result)->count !=
                type_of(l, maker->operands[0])->count)
            continue;
        if (found != SF_NONE)
            return SF_NONE;
        found = reader;
    }
    return found;
}

/* One value of the type, and several inputs: all but one were broadcast. False if that does not
 * hold. */
static bool share_gradient(const backward_search *l, values *made, const values *rest,
                           sf_value input, sf_gradient *out)
{
    const sf_type *type = type_of(l, input);
    int plain = 0;
    sf_value shared = SF_NONE;
    if (count_of_type(l, made->at, made->count, type) != 1)
        return false;
    for (size_t i = 0; i < made->count; i++)
        shared = made->at[i] != SF_NONE && type_of(l, made->at[i]) == type ? made->at[i] : shared;
    for (size_t i = 0; i < rest->count; i++)
        plain += type_of(l, rest->at[i]) == type && find_undoing(l, shared, rest->at[i]) == SF_NONE;
    out->value = shared;
    out->reader = find_undoing(l, shared, input);
    return plain <= 1;
}

/* The value is taken when all inputs have it. */
static void take_shared(values *made, const sf_backward_part *backward)
{
    for (size_t v = 0; v < made->count; v++)
        for (int g = 0; g < backward->ngradients; g++)
            if (made->at[v] != SF_NONE && backward->gradients[g].value == made->at[v])
                made->at[v] = SF_NONE;
}

/* Gradients of parameters are known; the others go by their types. */
static sf_status match_gradients(backward_search *l, values *made, sf_backward_part *out)
{
    const sf_subgraph *part = l->part;
    values rest = {0};
    for (int i = 0; i < part->ninputs; i++) {
        const sf_value_info *info = &l->graph->values[part->inputs[i]];
        sf_value known =
            info->node == SF_NONE ? l->graph->arguments[info->index].gradient : SF_NONE;
        if (!is_real(l, part->inputs[i]))
            continue;
        sf_gradient *gradient = &out->gradients[out->ngradients++];
        gradient->value = SF_NONE;
        gradient->reader = SF_NONE;
        for (size_t v = 0; known != SF_NONE && v < made->count; v++)
            if (made->at[v] == known) {
                gradient->value = known;
                made->at[v] = SF_NONE;
            }
        if (gradient->value == SF_NONE)
            add_value(l, &rest, part->inputs[i]);
    }
    for (int i = 0, g = 0; i < part->ninputs; i++) {
        if (!is_real(l, part->inputs[i]))
            continue;
        sf_gradient *gradient = &out->gradients[g++];
        values others = {0};
        if (gradient->value == SF_NONE &&
            !(count_of_type(l, rest.at, rest.count, type_of(l, part->inputs[i])) > 1 &&
              share_gradient(l, made, &rest, part->inputs[i], gradient)))
            SF_TRY(take_of_type(l, made, rest.at, rest.count, part->inputs[i], true,
                                "that it makes", &gradient->value));
        if (gradient->value != SF_NONE && gradient->reader == SF_NONE)
            list_others(l, gradient->value, &others);
        gradient->others = others.at;
        gradient->nothers = (int)others.count;
    }
    take_shared(made, out);
    return SF_OK;
}

static sf_status match_ends(backward_search *l, sf_backward_part *out)
{
    values in = {0}, made = {0};
    const sf_subgraph *part = l->part;
    list_ends(l, &in, &made);
    for (int i = 0; i < part->noutputs; i++)
        if (is_real(l, part->outputs[i]))
            SF_TRY(take_of_type(l, &in, part->outputs, (size_t)part->noutputs, part->outputs[i],
                                false, "that come in", &out->cotangents[out->ncotangents++]));
    SF_TRY(match_gradients(l, &made, out));
    for (size_t i = 0; i < made.count; i++)
        if (made.at[i] != SF_NONE)
            return fail_unclear(l, "that it makes", type_of(l, made.at[i]),
                                count_of_type(l, made.at, made.count, type_of(l, made.at[i])), 0);
    for (size_t i = 0; i < in.count; i++)
        if (in.at[i] != SF_NONE)
            return fail_unclear(l, "that come in", type_of(l, in.at[i]),
                                count_of_type(l, in.at, in.count, type_of(l, in.at[i])), 0);
    return SF_OK;
}

static sf_status try_subgraph(backward_search *l, int doubts, sf_backward_part *out)
{
    size_t nodes = l->graph->nnodes * sizeof(bool);
    memset(l->within, 0, nodes);
    memset(l->foreign, 0, nodes);
    backward_mark_subgraph(l, doubts);
    settle_sums(l);
    mark_sums(l);
    out->ncotangents = out->ngradients = 0;
    SF_TRY(match_ends(l, out));
    return check_handed_on(l, out);
}

/* With more and more left to others, until it is clear which value is which gradient. */
static sf_status find_of_subgraph(backward_search *l, sf_backward_part *out)
{
    sf_diag *diag = l->diag, unheard = {0};
    SF_TRY(backward_check_inside(l));
    l->diag = &unheard;
    sf_status status = SF_EMISMATCH;
    for (int doubts = 0; doubts < BACKWARD_DOUBTS && status != SF_OK; doubts++)
        status = try_subgraph(l, doubts, out);
    sf_diag_clear(&unheard);
    l->diag = diag;
    return status == SF_OK ? SF_OK : try_subgraph(l, 0, out);
}

sf_status sf_find_backward_part(const sf_subgraph *part, sf_loc loc, sf_arena *arena, sf_diag *diag,
                                sf_backward_part *out)
{
    const sf_graph *graph = part->graph;
    backward_search l = {.graph = graph,
                         .part = part,
                         .within = SF_ARRAY(arena, graph->nnodes, bool),
                         .sums = SF_ARRAY(arena, graph->nnodes, bool),
                         .ours = SF_ARRAY(arena, graph->nvalues, bool),
                         .foreign = SF_ARRAY(arena, graph->nnodes, bool),
                         .follows = SF_ARRAY(arena, graph->nnodes, bool),
                         .fixed = sf_find_fixed(graph, arena),
                         .uses = sf_uses_of(graph, arena),
                         .arena = arena,
                         .loc = loc,
                         .diag = diag};
    *out = (sf_backward_part){.cotangents = SF_ARRAY(arena, part->noutputs + 1, sf_value),
                              .gradients = SF_ARRAY(arena, part->ninputs + 1, sf_gradient)};
    if (!part->module)
        return find_of_subgraph(&l, out);
    mark_module(&l);
    settle_sums(&l);
    mark_sums(&l);
    return match_ends(&l, out);
}
