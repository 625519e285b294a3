#include "front/find_loss.h"

#include <string.h>

#include "base/mem.h"
#include "front/number_state.h"
#include "front/role.h"
#include "ir/clone.h"
#include "op/op.h"

static bool may_be_loss(const sf_type *type)
{
    return type->rank == 0 && sf_is_float(type->dtype);
}

static void mark_value(void *context, sf_value value)
{
    ((bool *)context)[value] = true;
}

uint32_t *sf_find_new_state(const sf_graph *graph)
{
    uint32_t *becomes = sf_alloc(graph->nvalues * sizeof *becomes);
    memset(becomes, 0, graph->nvalues * sizeof *becomes);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            becomes[graph->top->results[graph->arguments[i].next]] = i + 1;
    return becomes;
}

/* Whether the node makes what is marked. New state stands for the old: a loss that reads parameters after
 * their update reads parameters, not the optimizer. With `floats`, values that gradients can flow through. */
static bool makes_marked(const sf_graph *graph, const sf_node *node, const uint32_t *becomes,
                         bool floats, bool *marks)
{
    bool any = false;
    for (uint32_t r = 0; r < node->nresults; r++) {
        sf_value value = node->result + r;
        if (!marks[value] || (floats && !sf_is_inexact(sf_type_of(graph, value)->dtype)))
            continue;
        if (becomes[value] > 0)
            marks[graph->top->arguments[becomes[value] - 1]] = true;
        else
            any = true;
    }
    return any;
}

/* From marked values back to all that they need; returns how many nodes that are. */
static uint32_t mark_needs(const sf_graph *graph, const uint32_t *becomes, bool floats, bool *marks)
{
    uint32_t count = 0;
    for (uint32_t i = graph->top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(graph, i);
        if (!makes_marked(graph, node, becomes, floats, marks))
            continue;
        count++;
        for (uint32_t o = 0; o < node->noperands; o++)
            marks[node->operands[o]] = true;
        for (uint32_t r = 0; r < node->nregions; r++)
            sf_block_uses(graph, node->regions[r], mark_value, marks);
    }
    return count;
}

/* A number that a step reports, and what speaks for its being the loss. */
typedef struct report {
    uint32_t result;
    uint32_t params; /* state that gradients can reach from it */
    bool fed;        /* it depends on what is fed to the step */
    int named;       /* 1: loss is a word of its name, 2: it is its name */
    bool gradient;   /* of a number that the step trains */
    uint32_t nodes;  /* that it needs */
} report;

static report look_at_report(const sf_graph *graph, const uint32_t *becomes, const bool *kept,
                             uint32_t result)
{
    static const char *const words[] = {"loss", NULL};
    const char *name = graph->results[result].name;
    bool *marks = sf_alloc(graph->nvalues * sizeof *marks);
    report out = {.result = result,
                  .named = sf_name_has_word(name, words) + sf_is_called_loss(name)};
    memset(marks, 0, graph->nvalues * sizeof *marks);
    marks[graph->top->results[result]] = true;
    mark_needs(graph, becomes, true, marks);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        out.params += marks[graph->top->arguments[i]] && kept[i] &&
                      sf_is_inexact(sf_argument_type(graph, i)->dtype);
    memset(marks, 0, graph->nvalues * sizeof *marks);
    marks[graph->top->results[result]] = true;
    out.nodes = mark_needs(graph, becomes, false, marks);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        out.fed = out.fed || (marks[graph->top->arguments[i]] && !kept[i]);
    sf_free(marks);
    return out;
}

/* Whether the number is a sum of others, one of them `part`. A multiple of it is none. */
static bool is_sum_of(const sf_graph *graph, sf_value sum, sf_value part, bool added, int depth)
{
    const sf_node *node = sf_maker(graph, sum);
    added = added || (node && sf_is(node, SF_OP_ADD));
    bool goes_on = node && (sf_is(node, SF_OP_ADD) || sf_is(node, SF_OP_MULTIPLY) ||
                            sf_is(node, SF_OP_DIVIDE) || sf_is(node, SF_OP_CONVERT));
    for (uint32_t i = 0; goes_on && depth > 0 && i < node->noperands; i++)
        if ((added && node->operands[i] == part) ||
            is_sum_of(graph, node->operands[i], part, added, depth - 1))
            return true;
    return false;
}

/* Whether a number that the step trains is updated with the value, which depends on that number: it is its gradient. */
static bool is_gradient_of_number(const sf_graph *graph, const uint32_t *becomes,
                                  const sf_number_state *numbers, uint32_t result)
{
    bool found = false;
    bool *needs = sf_needed_by(graph, becomes, result);
    for (uint32_t r = 0; r < graph->top->nresults && !found; r++) {
        uint32_t of = numbers->of[r];
        if (of == SF_NONE || !needs[graph->top->arguments[of]])
            continue;
        uint32_t *none = sf_alloc(graph->nvalues * sizeof *none);
        memset(none, 0, graph->nvalues * sizeof *none);
        bool *feeds = sf_needed_by(graph, none, r);
        found = feeds[graph->top->results[result]];
        sf_free(feeds);
        sf_free(none);
    }
    sf_free(needs);
    return found;
}

/* A norm of the parameters is fed nothing, an accuracy has no gradients, a part of the loss fewer of them, and a norm
 * of gradients needs more than the loss does. */
static bool is_rather_loss(const sf_graph *graph, const report *a, const report *b)
{
    enum { DEPTH = 6 };
    sf_value x = graph->top->results[a->result], y = graph->top->results[b->result];
    if (a->fed != b->fed)
        return a->fed;
    if (a->params != b->params)
        return a->params > b->params;
    bool sums = is_sum_of(graph, x, y, false, DEPTH), part = is_sum_of(graph, y, x, false, DEPTH);
    if (sums != part)
        return sums;
    if (a->named != b->named)
        return a->named > b->named;
    if (a->gradient != b->gradient)
        return b->gradient;
    return a->nodes <= b->nodes;
}

/* While it is not known what is state, moments count as much as parameters, and a norm of updates reaches more than the
 * loss. */
static bool is_rather_loss_of_unlinked(const report *a, const report *b)
{
    if (a->fed != b->fed)
        return a->fed;
    if ((a->params > 0) != (b->params > 0))
        return a->params > 0;
    if (a->named != b->named)
        return a->named > b->named;
    if (a->gradient != b->gradient)
        return b->gradient;
    return a->nodes <= b->nodes;
}

static bool is_next_of_any(const sf_graph *graph, uint32_t result)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next == result)
            return true;
    return false;
}

uint32_t sf_guess_loss(const sf_graph *graph, const uint32_t *becomes, const bool *kept,
                       bool linked)
{
    enum { MOST = 32 };
    report best = {.result = SF_NONE};
    int count = 0;
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (graph->results[i].is_loss)
            return i;
    sf_arena arena = {0};
    sf_number_state numbers = sf_find_number_state(graph, &arena);
    for (uint32_t i = graph->top->nresults; i-- > 0 && count < MOST;) {
        if (!may_be_loss(sf_result_type(graph, i)) || (linked && is_next_of_any(graph, i)) ||
            numbers.of[i] != SF_NONE)
            continue;
        report one = look_at_report(graph, becomes, kept, i);
        one.gradient = is_gradient_of_number(graph, becomes, &numbers, i);
        bool stays = count++ > 0 && (linked ? is_rather_loss(graph, &best, &one)
                                            : is_rather_loss_of_unlinked(&best, &one));
        if (!stays)
            best = one;
    }
    sf_arena_free(&arena);
    return best.result;
}

bool *sf_needed_by(const sf_graph *graph, const uint32_t *becomes, uint32_t result)
{
    if (result == SF_NONE)
        return NULL;
    bool *marks = sf_alloc(graph->nvalues * sizeof *marks);
    memset(marks, 0, graph->nvalues * sizeof *marks);
    marks[graph->top->results[result]] = true;
    mark_needs(graph, becomes, false, marks);
    return marks;
}
