#include "ir/clone.h"

#include "base/mem.h"

static const sf_value *mapped(sf_arena *arena, uint32_t count, const sf_value *values,
                              const sf_value *map)
{
    sf_value *out = SF_ARRAY(arena, count, sf_value);
    for (uint32_t i = 0; i < count; i++)
        out[i] = map[values[i]];
    return out;
}

static void clone_node(const sf_graph *from, const sf_node *node, sf_graph *to, sf_block *block,
                       sf_value *map)
{
    sf_arena scratch = {0};
    sf_block **regions = SF_ARRAY(&scratch, node->nregions, sf_block *);
    const sf_type **types = SF_ARRAY(&scratch, node->nresults, const sf_type *);
    for (uint32_t r = 0; r < node->nregions; r++)
        regions[r] = sf_block_clone(from, node->regions[r], to, map);
    for (uint32_t r = 0; r < node->nresults; r++)
        types[r] = sf_type_of(from, node->result + r);
    sf_node_spec spec = {.def = node->def,
                         .noperands = node->noperands,
                         .operands = mapped(&scratch, node->noperands, node->operands, map),
                         .nresults = node->nresults,
                         .types = types,
                         .attrs = node->attrs,
                         .nregions = node->nregions,
                         .regions = regions,
                         .scope = node->scope,
                         .phase = node->phase,
                         .loc = node->loc};
    const sf_node *added = sf_graph_add(to, block, &spec);
    for (uint32_t r = 0; r < node->nresults; r++)
        map[node->result + r] = added->result + r;
    sf_arena_free(&scratch);
}

sf_block *sf_block_clone(const sf_graph *from, const sf_block *block, sf_graph *to, sf_value *map)
{
    sf_block *copy = sf_block_new(to);
    sf_arena scratch = {0};
    for (uint32_t i = 0; i < block->narguments; i++)
        map[block->arguments[i]] =
            sf_block_argument(to, copy, sf_type_of(from, block->arguments[i]));
    for (uint32_t i = 0; i < block->nnodes; i++)
        clone_node(from, from->nodes[block->nodes[i]], to, copy, map);
    sf_block_return(to, copy, block->nresults,
                    mapped(&scratch, block->nresults, block->results, map));
    sf_arena_free(&scratch);
    return copy;
}

void sf_block_uses(const sf_graph *graph, const sf_block *block, sf_see_use *see, void *context)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        for (uint32_t j = 0; j < node->noperands; j++)
            see(context, node->operands[j]);
        for (uint32_t j = 0; j < node->nregions; j++)
            sf_block_uses(graph, node->regions[j], see, context);
    }
    for (uint32_t i = 0; i < block->nresults; i++)
        see(context, block->results[i]);
}
