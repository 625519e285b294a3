/* The vocabulary of a step: the ops that look up tokens in a table, and those that compute scores
 * of all of them. Both are large for their compute, at the two ends of a network, and few others
 * are like them; a schedule with shared stages shares these. */
#include "op/op.h"
#include "op/slots.h"
#include "plan/pipeline/stage_cut.h"
#include "plan/pipeline/stage_flow.h"

typedef struct vocabulary {
    const sf_graph *graph;
    sf_flow flow;
    const bool *anywhere, *moving;
    bool *first, *last; /* by node */
} vocabulary;

static bool is_staged(const vocabulary *v, const sf_node *node)
{
    return node->phase == SF_FORWARD && !v->anywhere[node->id];
}

/* The parameter of a value, up to ops that do not depend on the batch; SF_NONE: it is none. */
static uint32_t parameter_of(const vocabulary *v, sf_value value)
{
    const sf_node *maker;
    while ((maker = sf_maker(v->graph, value)) != NULL) {
        if (maker->noperands == 0 || v->moving[maker->id])
            return SF_NONE;
        value = maker->operands[0];
    }
    uint32_t argument = v->graph->values[value].index;
    return v->graph->arguments[argument].role == SF_ROLE_PARAM ? argument : SF_NONE;
}

/* Tokens of the batch are looked up in a parameter. */
static bool is_lookup(const vocabulary *v, const sf_node *node)
{
    if (!sf_is(node, SF_OP_GATHER) || parameter_of(v, node->operands[0]) == SF_NONE)
        return false;
    const sf_node *indices = sf_maker(v->graph, node->operands[1]);
    if (!indices)
        return sf_is_handed_in(&v->graph->arguments[v->graph->values[node->operands[1]].index]);
    return v->anywhere[indices->id] && v->moving[indices->id];
}

/* A product with a parameter that makes more of each row than there was. */
static bool makes_scores(const vocabulary *v, const sf_node *node)
{
    if (!sf_is(node, SF_OP_DOT_GENERAL) || !v->moving[node->id])
        return false;
    for (uint32_t o = 0; o < 2; o++) {
        const sf_type *rows = sf_type_of(v->graph, node->operands[1 - o]);
        if (parameter_of(v, node->operands[o]) != SF_NONE)
            return sf_type_of(v->graph, node->result)->count > rows->count;
    }
    return false;
}

/* The operands of those at the first end, if they have a stage. */
static void add_sources(vocabulary *v)
{
    for (uint32_t i = v->graph->top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(v->graph, i);
        for (uint32_t o = 0; o < node->noperands && v->first[node->id]; o++) {
            const sf_node *maker = sf_maker(v->graph, node->operands[o]);
            if (maker && is_staged(v, maker))
                v->first[maker->id] = true;
        }
    }
}

/* All that follows from it in the forward pass, and their operands of parameters alone. */
static void add_rest(vocabulary *v, const sf_node *scores)
{
    const sf_block *top = v->graph->top;
    v->last[scores->id] = true;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(v->graph, i);
        for (uint32_t o = 0; o < node->noperands && is_staged(v, node); o++) {
            const sf_node *maker = sf_maker(v->graph, v->flow.source[node->operands[o]]);
            v->last[node->id] = v->last[node->id] || (maker && v->last[maker->id]);
        }
    }
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(v->graph, i);
        bool all = is_staged(v, node) && !v->moving[node->id] && !v->first[node->id];
        for (uint32_t r = 0; r < node->nresults && all; r++)
            for (uint32_t u = v->flow.uses.first[node->result + r];
                 u < v->flow.uses.first[node->result + r + 1] && all; u++) {
                uint32_t reader = v->flow.uses.at[u].node;
                all = reader != SF_NONE &&
                      (v->last[reader] || v->graph->nodes[reader]->phase != SF_FORWARD);
            }
        v->last[node->id] = v->last[node->id] || all;
    }
}

sf_status sf_find_vocabulary(const sf_graph *graph, sf_arena *arena, sf_diag *diag, bool **first,
                             bool **last)
{
    vocabulary v = {.graph = graph, .flow = sf_flow_of(graph, arena)};
    const sf_node *scores = NULL;
    bool any = false;
    v.anywhere = sf_find_anywhere(graph, arena);
    v.moving = sf_find_moving(graph, arena);
    v.first = *first = SF_ARRAY(arena, graph->nnodes, bool);
    v.last = *last = SF_ARRAY(arena, graph->nnodes, bool);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (!is_staged(&v, node))
            continue;
        if (makes_scores(&v, node))
            scores = node;
        v.first[node->id] = is_lookup(&v, node);
        any = any || v.first[node->id];
    }
    if (!any || !scores) {
        sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                "the step has no %s, which pipeline ranks could share: %s",
                any ? "product that makes scores of a vocabulary" : "table of tokens",
                any ? "no product with a parameter makes more than it reads"
                    : "no parameter is looked up by what the batch holds");
        return sf_hint(diag, "say what is on several pipeline ranks, as in --stages "
                             "@all,layer_0@0,layer_3@1,head@all");
    }
    add_sources(&v);
    add_rest(&v, scores);
    return SF_OK;
}
