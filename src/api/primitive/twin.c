#include "api/primitive/twin.h"

#include "ir/uses.h"
#include "op/slots.h"
#include "op/util.h"

typedef struct looking {
    const sf_graph *graph;
    const sf_subgraph *part;
    bool *within; /* by node: it is of the backward pass of the module */
    bool *sums;   /* by node: it adds up what leaves the module, and does nothing else */
    const bool *fixed;
    sf_uses uses;
    sf_arena *arena;
    sf_loc loc;
    sf_diag *diag;
} looking;

typedef struct values {
    size_t count, capacity;
    sf_value *at;
} values;

static void add_value(looking *l, values *list, sf_value value)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i] == value)
            return;
    SF_PUSH(l->arena, list->at, list->count, list->capacity, value);
}

static bool is_within(const looking *l, sf_value value)
{
    uint32_t maker = l->graph->values[value].node;
    return maker != SF_NONE && l->within[maker];
}

/* A gradient that comes from behind the module. */
static bool comes_in(const looking *l, sf_value value)
{
    const sf_node *maker = sf_maker(l->graph, value);
    return maker && !l->within[maker->id] && !l->fixed[maker->id] && maker->phase == SF_BACKWARD;
}

/* What is in the scope of the module; then sums: of what comes in, which are not, and of what only it has made, which are. */
static void mark_within(looking *l)
{
    for (uint32_t i = 0; i < l->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(l->graph, i);
        l->within[node->id] =
            node->phase == SF_BACKWARD && sf_is_in_module(node->scope->path, l->part->module);
    }
    for (uint32_t i = 0; i < l->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(l->graph, i);
        if (!sf_is(node, SF_OP_ADD) || node->phase != SF_BACKWARD)
            continue;
        if (comes_in(l, node->operands[0]) && comes_in(l, node->operands[1]))
            l->within[node->id] = false;
        if (is_within(l, node->operands[0]) && is_within(l, node->operands[1]))
            l->within[node->id] = true;
    }
}

/* Sums whose values leave, or go into such sums alone. */
static void mark_sums(looking *l)
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

/* What others add to a sum. */
static void list_others(looking *l, sf_value sum, values *out)
{
    values todo = {0};
    SF_PUSH(l->arena, todo.at, todo.count, todo.capacity, sum);
    while (todo.count > 0) {
        sf_value value = todo.at[--todo.count];
        const sf_node *node = sf_maker(l->graph, value);
        if (comes_in(l, value))
            SF_PUSH(l->arena, out->at, out->count, out->capacity, value);
        for (uint32_t o = 0; node && l->sums[node->id] && o < node->noperands; o++)
            SF_PUSH(l->arena, todo.at, todo.count, todo.capacity, node->operands[o]);
    }
}

static void list_ends(looking *l, values *in, values *out)
{
    for (uint32_t i = 0; i < l->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(l->graph, i);
        if (!l->within[node->id])
            continue;
        for (uint32_t o = 0; o < node->noperands && !l->sums[node->id]; o++)
            if (comes_in(l, node->operands[o]))
                add_value(l, in, node->operands[o]);
        for (sf_value v = node->result; v < node->result + node->nresults; v++)
            for (uint32_t u = l->uses.first[v]; u < l->uses.first[v + 1]; u++)
                if (l->uses.at[u].node == SF_NONE || !l->within[l->uses.at[u].node])
                    add_value(l, out, v);
    }
}

static const sf_type *type_of(const looking *l, sf_value value)
{
    return sf_type_of(l->graph, value);
}

static int count_of_type(const looking *l, const sf_value *list, size_t count, const sf_type *type)
{
    int found = 0;
    for (size_t i = 0; i < count; i++)
        found += list[i] != SF_NONE && type_of(l, list[i]) == type;
    return found;
}

static sf_status fail_unclear(const looking *l, const char *what, const sf_type *type, int found,
                              int wanted)
{
    char text[SF_TYPE_TEXT];
    sf_fail(l->diag, SF_EWRONG, l->loc,
            "the backward pass of %s has %d gradients of %s %s, and the module %d: which is which "
            "cannot be told",
            l->part->module, found, sf_type_text(type, text), what, wanted);
    return sf_hint(l->diag,
                   "replace a module with all that reads the same, or without its gradients");
}

/* Takes the one value of the type out of the list; one that may be missing where `may_lack`. */
static sf_status take_of_type(const looking *l, values *list, const sf_value *all, size_t nall,
                              sf_value like, bool may_lack, const char *what, sf_value *out)
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

static bool is_real(const looking *l, sf_value value)
{
    return sf_is_float(type_of(l, value)->dtype);
}

/* Gradients of parameters are known; the others go by their types. */
static sf_status match_gradients(looking *l, values *made, sf_twin *out)
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
        if (gradient->value == SF_NONE)
            SF_TRY(take_of_type(l, made, rest.at, rest.count, part->inputs[i], true,
                                "that it makes", &gradient->value));
        if (gradient->value != SF_NONE)
            list_others(l, gradient->value, &others);
        gradient->others = others.at;
        gradient->nothers = (int)others.count;
    }
    return SF_OK;
}

static sf_status match_ends(looking *l, sf_twin *out)
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

sf_status sf_find_twin(const sf_subgraph *part, sf_loc loc, sf_arena *arena, sf_diag *diag,
                       sf_twin *out)
{
    const sf_graph *graph = part->graph;
    looking l = {.graph = graph,
                 .part = part,
                 .within = SF_ARRAY(arena, graph->nnodes, bool),
                 .sums = SF_ARRAY(arena, graph->nnodes, bool),
                 .fixed = sf_find_fixed(graph, arena),
                 .uses = sf_uses_of(graph, arena),
                 .arena = arena,
                 .loc = loc,
                 .diag = diag};
    *out = (sf_twin){.cotangents = SF_ARRAY(arena, part->noutputs + 1, sf_value),
                     .gradients = SF_ARRAY(arena, part->ninputs + 1, sf_gradient)};
    if (!part->module)
        return sf_fail(diag, SF_EUSAGE, loc,
                       "gradients are replaced with those of whole modules, not of subgraphs");
    mark_within(&l);
    mark_sums(&l);
    return match_ends(&l, out);
}
