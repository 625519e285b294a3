#include "ir/uses.h"

typedef void visit_use(sf_uses *uses, sf_value value, sf_value_use use);

static void count_region(const sf_graph *graph, const sf_block *block, uint32_t top, sf_uses *uses,
                         visit_use *visit)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        for (uint32_t o = 0; o < node->noperands; o++)
            visit(uses, node->operands[o], (sf_value_use){top, SF_NONE});
        for (uint32_t r = 0; r < node->nregions; r++)
            count_region(graph, node->regions[r], top, uses, visit);
    }
    for (uint32_t r = 0; r < block->nresults; r++)
        visit(uses, block->results[r], (sf_value_use){top, SF_NONE});
}

static void visit_uses(const sf_graph *graph, sf_uses *uses, visit_use *visit)
{
    const sf_block *top = graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        for (uint32_t o = 0; o < node->noperands; o++)
            visit(uses, node->operands[o], (sf_value_use){node->id, o});
        for (uint32_t r = 0; r < node->nregions; r++)
            count_region(graph, node->regions[r], node->id, uses, visit);
    }
    for (uint32_t r = 0; r < top->nresults; r++)
        visit(uses, top->results[r], (sf_value_use){SF_NONE, SF_NONE});
}

static void count_use(sf_uses *uses, sf_value value, sf_value_use use)
{
    (void)use;
    uses->first[value + 1]++;
}

/* While uses are added, first[v + 1] is where the next use of v goes: in the end, where those of v + 1
 * begin. */
static void list_use(sf_uses *uses, sf_value value, sf_value_use use)
{
    uses->at[uses->first[value + 1]++] = use;
}

sf_uses sf_uses_of(const sf_graph *graph, sf_arena *arena)
{
    sf_uses uses = {.first = SF_ARRAY(arena, graph->nvalues + 1, uint32_t)};
    uint32_t total = 0;
    visit_uses(graph, &uses, count_use);
    for (size_t v = 0; v <= graph->nvalues; v++) {
        uint32_t count = uses.first[v];
        uses.first[v] = total;
        total += count;
    }
    uses.at = SF_ARRAY(arena, total, sf_value_use);
    visit_uses(graph, &uses, list_use);
    return uses;
}

bool *sf_find_fixed(const sf_graph *graph, sf_arena *arena)
{
    bool *is_fixed = SF_ARRAY(arena, graph->nnodes, bool);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        bool all = node->nregions == 0;
        for (uint32_t o = 0; all && o < node->noperands; o++) {
            const sf_node *maker = sf_maker(graph, node->operands[o]);
            all = maker && is_fixed[maker->id];
        }
        is_fixed[node->id] = all;
    }
    return is_fixed;
}
