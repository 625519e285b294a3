#include "front/state.h"

#include <string.h>

#include "base/mem.h"
#include "front/link.h"
#include "front/role.h"
#include "front/sidecar.h"
#include "ir/clone.h"

/* The loss */

static bool may_be_loss(const sf_type *type)
{
    return type->rank == 0 && sf_is_float(type->dtype);
}

static void mark_value(void *context, sf_value value)
{
    ((bool *)context)[value] = true;
}

/* From marked values back to all that they need; returns how many nodes that are. With `floats`, only through values of
 * a floating-point type: what gradients can go along. */
static uint32_t mark_needs(const sf_graph *graph, bool *marks, bool floats)
{
    uint32_t count = 0;
    for (uint32_t i = graph->top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(graph, i);
        bool any = false;
        for (uint32_t r = 0; r < node->nresults; r++) {
            sf_value value = node->result + r;
            any =
                any || (marks[value] && (!floats || sf_is_float(sf_type_of(graph, value)->dtype)));
        }
        count += any;
        for (uint32_t o = 0; any && o < node->noperands; o++)
            marks[node->operands[o]] = true;
        for (uint32_t r = 0; any && r < node->nregions; r++)
            sf_block_uses(graph, node->regions[r], mark_value, marks);
    }
    return count;
}

/* A number that a step reports, and what speaks for its being the loss. */
typedef struct report {
    uint32_t result;
    uint32_t params; /* state that gradients can reach from it */
    bool fed;        /* it depends on what is fed to the step */
    bool named;
    uint32_t nodes; /* that it needs */
} report;

static report look_at_report(const sf_graph *graph, uint32_t result)
{
    static const char *const words[] = {"loss", NULL};
    bool *marks = sf_alloc(graph->nvalues * sizeof *marks);
    report out = {.result = result, .named = sf_name_has_word(graph->results[result].name, words)};
    memset(marks, 0, graph->nvalues * sizeof *marks);
    marks[graph->top->results[result]] = true;
    mark_needs(graph, marks, true);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        out.params += marks[graph->top->arguments[i]] && graph->arguments[i].next != SF_NONE &&
                      sf_is_float(sf_argument_type(graph, i)->dtype);
    memset(marks, 0, graph->nvalues * sizeof *marks);
    marks[graph->top->results[result]] = true;
    out.nodes = mark_needs(graph, marks, false);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        out.fed =
            out.fed || (marks[graph->top->arguments[i]] && graph->arguments[i].next == SF_NONE);
    sf_free(marks);
    return out;
}

/* A norm of the parameters is fed nothing, an accuracy has no gradients, a part of the loss fewer of them, and a norm
 * of gradients needs more than the loss does. */
static bool is_rather_loss(const report *a, const report *b)
{
    if (a->fed != b->fed)
        return a->fed;
    if (a->params != b->params)
        return a->params > b->params;
    if (a->named != b->named)
        return a->named;
    return a->nodes <= b->nodes;
}

/* Of the last numbers that are nobody's state. */
static void find_loss(sf_graph *graph)
{
    enum { MOST = 32 };
    bool *linked = sf_alloc(graph->top->nresults * sizeof *linked);
    report best = {.result = SF_NONE};
    int count = 0;
    memset(linked, 0, graph->top->nresults * sizeof *linked);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            linked[graph->arguments[i].next] = true;
    for (uint32_t i = graph->top->nresults; i-- > 0 && count < MOST;) {
        if (linked[i] || !may_be_loss(sf_result_type(graph, i)))
            continue;
        report one = look_at_report(graph, i);
        if (count++ == 0 || !is_rather_loss(&best, &one))
            best = one;
    }
    if (best.result != SF_NONE)
        graph->results[best.result].is_loss = true;
    sf_free(linked);
}

/* By value: what the loss needs; NULL when there is none. For sf_free. */
static bool *needed_by_loss(const sf_graph *graph)
{
    bool *marks = sf_alloc(graph->nvalues * sizeof *marks), has_loss = false;
    memset(marks, 0, graph->nvalues * sizeof *marks);
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (graph->results[i].is_loss)
            has_loss = marks[graph->top->results[i]] = true;
    mark_needs(graph, marks, false);
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
    find_loss(graph);
    bool *needed = needed_by_loss(graph);
    sf_find_roles(graph, needed, sf_any_link(graph));
    sf_free(needed);
    return SF_OK;
}
