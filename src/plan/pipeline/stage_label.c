#include "plan/pipeline/stage_label.h"

#include <stdlib.h>

#include "plan/pipeline/stage_flow.h"

/* A stage while it is looked for: nodes of a label, so many changes of label before the end. */
typedef struct level {
    uint32_t label, depth;
} level;

typedef struct labelling {
    const sf_graph *graph;
    sf_arena *arena;
    sf_flow flow;
    const bool *anywhere, *moving; /* by node */
    uint32_t *label;               /* by node */
    uint32_t *depth; /* by node: changes of label between it and the end, on the longest way */
    level *levels;   /* from the first stage to the last */
    size_t nlevels, capacity;
    uint32_t *stage; /* by node: one of the levels; SF_NONE: not said */
} labelling;

static bool is_placed(const labelling *l, const sf_node *node)
{
    return node->phase == SF_FORWARD && !l->anywhere[node->id] && l->moving[node->id];
}

static const sf_node *placed_maker(const labelling *l, sf_value value)
{
    const sf_node *maker = sf_maker(l->graph, l->flow.source[value]);
    return maker && is_placed(l, maker) ? maker : NULL;
}

/* Labels of unlabelled nodes */

/* The label after the most changes, of the node's operands; `changes` is by node. */
static void follow_operands(labelling *l, const sf_node *node, uint32_t *changes)
{
    uint32_t label = SF_NONE, most = 0;
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = placed_maker(l, node->operands[o]);
        if (!maker || l->label[maker->id] == SF_NONE)
            continue;
        if (label == SF_NONE || changes[maker->id] > most) {
            label = l->label[maker->id];
            most = changes[maker->id];
        }
    }
    if (l->label[node->id] == SF_NONE)
        l->label[node->id] = label;
    changes[node->id] = most + (label != SF_NONE && l->label[node->id] != label);
}

/* Calls `visit` for the forward nodes that read the node's results. */
typedef void visit_reader(labelling *l, const sf_node *node, const sf_node *reader);
static void visit_readers(labelling *l, const sf_node *node, visit_reader *visit)
{
    for (uint32_t r = 0; r < node->nresults; r++) {
        sf_value value = node->result + r;
        for (uint32_t u = l->flow.uses.first[value]; u < l->flow.uses.first[value + 1]; u++) {
            uint32_t reader = l->flow.uses.at[u].node;
            if (reader != SF_NONE && is_placed(l, l->graph->nodes[reader]))
                visit(l, node, l->graph->nodes[reader]);
        }
    }
}

static void follow_reader(labelling *l, const sf_node *node, const sf_node *reader)
{
    if (l->label[node->id] == SF_NONE)
        l->label[node->id] = l->label[reader->id];
}

static void complete_labels(labelling *l)
{
    const sf_block *top = l->graph->top;
    uint32_t *changes = SF_ARRAY(l->arena, l->graph->nnodes, uint32_t);
    for (uint32_t i = 0; i < top->nnodes; i++)
        if (is_placed(l, sf_top_node(l->graph, i)))
            follow_operands(l, sf_top_node(l->graph, i), changes);
    for (uint32_t i = top->nnodes; i-- > 0;)
        if (is_placed(l, sf_top_node(l->graph, i)))
            visit_readers(l, sf_top_node(l->graph, i), follow_reader);
}

/* Levels */

static void deepen(labelling *l, const sf_node *node, const sf_node *reader)
{
    uint32_t depth = l->depth[reader->id] + (l->label[reader->id] != l->label[node->id] ? 1 : 0);
    if (depth > l->depth[node->id])
        l->depth[node->id] = depth;
}

static int by_depth(const void *a, const void *b)
{
    const level *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth > y->depth ? -1 : 1;
    return x->label < y->label ? -1 : x->label > y->label;
}

static void find_levels(labelling *l)
{
    const sf_block *top = l->graph->top;
    size_t count = 0;
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(l->graph, i);
        if (!is_placed(l, node) || l->label[node->id] == SF_NONE)
            continue;
        visit_readers(l, node, deepen);
        level it = {l->label[node->id], l->depth[node->id]};
        SF_PUSH(l->arena, l->levels, l->nlevels, l->capacity, it);
    }
    if (l->nlevels > 0)
        qsort(l->levels, l->nlevels, sizeof *l->levels, by_depth);
    for (size_t i = 0; i < l->nlevels; i++)
        if (count == 0 || by_depth(&l->levels[count - 1], &l->levels[i]) != 0)
            l->levels[count++] = l->levels[i];
    l->nlevels = count;
}

/* The first level of its label that is not before its operands. There is one: that of its depth. */
static uint32_t find_first(const labelling *l, const sf_node *node)
{
    uint32_t first = 0;
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = placed_maker(l, node->operands[o]);
        if (maker && l->stage[maker->id] != SF_NONE && l->stage[maker->id] > first)
            first = l->stage[maker->id];
    }
    while (first + 1 < l->nlevels && l->levels[first].label != l->label[node->id])
        first++;
    return first;
}

/* Numbers the levels that have nodes. */
static sf_labelled number_stages(labelling *l)
{
    uint32_t *number = SF_ARRAY(l->arena, l->nlevels + 1, uint32_t);
    sf_labelled out = {.forward = l->stage, .label = SF_ARRAY(l->arena, l->nlevels + 1, uint32_t)};
    for (uint32_t n = 0; n < l->graph->nnodes; n++)
        if (l->stage[n] != SF_NONE)
            number[l->stage[n]] = 1;
    for (size_t i = 0; i < l->nlevels; i++)
        if (number[i]) {
            out.label[out.count] = l->levels[i].label;
            number[i] = out.count++;
        }
    for (uint32_t n = 0; n < l->graph->nnodes; n++)
        if (l->stage[n] != SF_NONE)
            l->stage[n] = number[l->stage[n]];
    if (out.count == 0)
        out.label[out.count++] = SF_NONE;
    return out;
}

sf_labelled sf_cut_by_labels(const sf_graph *graph, const uint32_t *labels, sf_arena *arena)
{
    labelling l = {.graph = graph,
                   .arena = arena,
                   .flow = sf_flow_of(graph, arena),
                   .anywhere = sf_find_anywhere(graph, arena),
                   .moving = sf_find_moving(graph, arena),
                   .label = SF_ARRAY(arena, graph->nnodes, uint32_t),
                   .depth = SF_ARRAY(arena, graph->nnodes, uint32_t),
                   .stage = SF_ARRAY(arena, graph->nnodes, uint32_t)};
    for (uint32_t n = 0; n < graph->nnodes; n++) {
        l.label[n] = labels[n];
        l.stage[n] = SF_NONE;
    }
    complete_labels(&l);
    find_levels(&l);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (is_placed(&l, node) && l.label[node->id] != SF_NONE)
            l.stage[node->id] = find_first(&l, node);
    }
    return number_stages(&l);
}
