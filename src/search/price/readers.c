#include "search/price/readers.h"

#include <string.h>

#include "ir/uses.h"
#include "shard/strategy.h"

/* Values of nested blocks are the business of these alone. */
static void find_top(const sf_graph *graph, sf_readers *out)
{
    const sf_block *top = graph->top;
    for (size_t v = 0; v < graph->nvalues; v++)
        out->origin[v] = (sf_value)v;
    for (uint32_t i = 0; i < top->narguments; i++)
        out->is_top[top->arguments[i]] = true;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        for (uint32_t r = 0; r < node->nresults; r++) {
            out->is_top[node->result + r] = true;
            if (sf_is_transparent(node))
                out->origin[node->result + r] = out->origin[node->operands[r]];
        }
    }
}

/* Readers beyond a barrier find the value itself. */
static bool use_hands_on(const sf_graph *graph, sf_value_use use)
{
    return use.operand != SF_NONE && sf_is_transparent(graph->nodes[use.node]);
}

typedef void visit_reader(sf_readers *out, sf_value value, sf_reader reader);

static void count_reader(sf_readers *out, sf_value value, sf_reader reader)
{
    (void)reader;
    out->first[value + 2]++;
}

static void add_reader(sf_readers *out, sf_value value, sf_reader reader)
{
    out->at[out->first[value + 1]++] = reader;
}

static void visit_readers(const sf_graph *graph, const sf_uses *uses, sf_readers *out,
                          visit_reader *visit)
{
    const sf_block *top = graph->top;
    for (size_t v = 0; v < graph->nvalues; v++)
        for (uint32_t u = uses->first[v]; out->is_top[v] && u < uses->first[v + 1]; u++) {
            sf_value_use use = uses->at[u];
            if (use.node != SF_NONE && !use_hands_on(graph, use))
                visit(out, out->origin[v], (sf_reader){use.node, use.operand});
        }
    for (uint32_t r = 0; r < top->nresults; r++)
        visit(out, out->origin[top->results[r]], (sf_reader){SF_NONE, r});
}

sf_readers sf_readers_of(const sf_graph *graph, sf_arena *arena)
{
    const sf_block *top = graph->top;
    sf_arena scratch = {0};
    sf_uses uses = sf_uses_of(graph, &scratch);
    sf_readers out = {.is_top = SF_ARRAY(arena, graph->nvalues, bool),
                      .origin = SF_ARRAY(arena, graph->nvalues, sf_value),
                      .first = SF_ARRAY(arena, graph->nvalues + 2, uint32_t),
                      .becomes = SF_ARRAY(arena, top->nresults, uint32_t)};
    find_top(graph, &out);
    visit_readers(graph, &uses, &out, count_reader);
    for (size_t v = 2; v < graph->nvalues + 2; v++)
        out.first[v] += out.first[v - 1];
    out.at = SF_ARRAY(arena, out.first[graph->nvalues + 1], sf_reader);
    visit_readers(graph, &uses, &out, add_reader);
    for (uint32_t r = 0; r < top->nresults; r++)
        out.becomes[r] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            out.becomes[graph->arguments[i].next] = i;
    sf_arena_free(&scratch);
    return out;
}
