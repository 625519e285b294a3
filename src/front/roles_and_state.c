#include "front/roles_and_state.h"

#include <string.h>

#include "base/mem.h"
#include "front/lost_state.h"
#include "front/role.h"
#include "front/sidecar.h"
#include "front/state_links.h"
#include "ir/clone.h"
#include "op/op.h"

/* The loss */

static bool may_be_loss(const sf_type *type)
{
    return type->rank == 0 && sf_is_float(type->dtype);
}

static void mark_value(void *context, sf_value value)
{
    ((bool *)context)[value] = true;
}

/* By value: the argument that it becomes, plus one; 0 for all but new state. For sf_free. */
static uint32_t *find_new_state(const sf_graph *graph)
{
    uint32_t *becomes = sf_alloc(graph->nvalues * sizeof *becomes);
    memset(becomes, 0, graph->nvalues * sizeof *becomes);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            becomes[graph->top->results[graph->arguments[i].next]] = i + 1;
    return becomes;
}

/* Whether the node makes marked values. New state counts as the old: a loss that reads parameters
 * after their update reads parameters, not the optimizer. With `floats`, values that gradients can
 * flow through. */
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

/* A number that a step reports, and evidence that it is the loss. */
typedef struct report {
    uint32_t result;
    uint32_t params; /* state that gradients can reach from it */
    bool fed;        /* it depends on the inputs of the step */
    int named;       /* 1: loss is a word of its name, 2: it is its name */
    uint32_t nodes;  /* that it needs */
} report;

static bool is_called_loss(const char *name)
{
    const char *last = strrchr(name, '[');
    return last ? strncmp(last, "['loss']", 8) == 0 : strcmp(name, "loss") == 0;
}

static report look_at_report(const sf_graph *graph, const uint32_t *becomes, uint32_t result)
{
    static const char *const words[] = {"loss", NULL};
    const char *name = graph->results[result].name;
    bool *marks = sf_alloc(graph->nvalues * sizeof *marks);
    report out = {.result = result, .named = sf_name_has_word(name, words) + is_called_loss(name)};
    memset(marks, 0, graph->nvalues * sizeof *marks);
    marks[graph->top->results[result]] = true;
    mark_needs(graph, becomes, true, marks);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        out.params += marks[graph->top->arguments[i]] && graph->arguments[i].next != SF_NONE &&
                      sf_is_inexact(sf_argument_type(graph, i)->dtype);
    memset(marks, 0, graph->nvalues * sizeof *marks);
    marks[graph->top->results[result]] = true;
    out.nodes = mark_needs(graph, becomes, false, marks);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        out.fed =
            out.fed || (marks[graph->top->arguments[i]] && graph->arguments[i].next == SF_NONE);
    sf_free(marks);
    return out;
}

/* Whether the number is a sum of others, one of them `part`. */
static bool is_sum_of(const sf_graph *graph, sf_value sum, sf_value part, int depth)
{
    const sf_node *node = sf_maker(graph, sum);
    bool adds = node && (sf_is(node, SF_OP_ADD) || sf_is(node, SF_OP_MULTIPLY) ||
                         sf_is(node, SF_OP_DIVIDE) || sf_is(node, SF_OP_CONVERT));
    for (uint32_t i = 0; adds && depth > 0 && i < node->noperands; i++)
        if (node->operands[i] == part || is_sum_of(graph, node->operands[i], part, depth - 1))
            return true;
    return false;
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
    if (is_sum_of(graph, x, y, DEPTH) != is_sum_of(graph, y, x, DEPTH))
        return is_sum_of(graph, x, y, DEPTH);
    if (a->named != b->named)
        return a->named > b->named;
    return a->nodes <= b->nodes;
}

/* Of the last numbers that are nobody's state. */
static void find_loss(sf_graph *graph, const uint32_t *becomes)
{
    enum { MOST = 32 };
    report best = {.result = SF_NONE};
    bool *linked = sf_alloc(graph->top->nresults * sizeof *linked);
    int count = 0;
    memset(linked, 0, graph->top->nresults * sizeof *linked);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            linked[graph->arguments[i].next] = true;
    for (uint32_t i = graph->top->nresults; i-- > 0 && count < MOST;) {
        if (linked[i] || !may_be_loss(sf_result_type(graph, i)))
            continue;
        report one = look_at_report(graph, becomes, i);
        if (count++ == 0 || !is_rather_loss(graph, &best, &one))
            best = one;
    }
    if (best.result != SF_NONE)
        graph->results[best.result].is_loss = true;
    sf_free(linked);
}

/* By value: predecessors of the loss; NULL when there is none. For sf_free. */
static bool *needed_by_loss(const sf_graph *graph, const uint32_t *becomes)
{
    bool *marks = sf_alloc(graph->nvalues * sizeof *marks), has_loss = false;
    memset(marks, 0, graph->nvalues * sizeof *marks);
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (graph->results[i].is_loss)
            has_loss = marks[graph->top->results[i]] = true;
    mark_needs(graph, becomes, false, marks);
    if (has_loss)
        return marks;
    sf_free(marks);
    return NULL;
}

sf_status sf_state_infer(sf_graph *graph, const sf_import_options *options, sf_diag *diag)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        graph->arguments[i].role = SF_ROLE_OTHER;
        graph->arguments[i].role_from = SF_FROM_NOTHING;
    }
    if (options->sidecar)
        SF_TRY(sf_sidecar_read(options->sidecar, options->sidecar_file, graph, diag));
    SF_TRY(sf_link_state(graph, options->state, diag));
    uint32_t *becomes = find_new_state(graph);
    find_loss(graph, becomes);
    bool *needed = needed_by_loss(graph, becomes);
    sf_find_roles(graph, needed, sf_any_link(graph));
    if (!options->state)
        sf_find_loose(graph);
    sf_free(needed);
    sf_free(becomes);
    return SF_OK;
}
