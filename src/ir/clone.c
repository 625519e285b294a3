#include "ir/clone.h"

#include "base/mem.h"
#include "ir/opdef.h"

typedef struct cloning {
    const sf_graph *from;
    sf_graph *to;
    sf_value *map;
    bool opens; /* regions, see sf_graph_clone_iteration */
    sf_arena scratch;
} cloning;

static void map_values(const cloning *c, uint32_t count, sf_value *values)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = c->map[values[i]];
}

static void clone_block(cloning *c, const sf_block *block, sf_block *copy);
static void clone_nodes(cloning *c, const sf_block *block, sf_block *copy);

/* The region in place of its node. */
static void open_region(cloning *c, const sf_node *node, sf_block *block)
{
    bool loops = node->def->control == SF_CONTROL_LOOP;
    const sf_block *region = node->regions[loops ? 1 : 0];
    for (uint32_t r = 1; r < node->nregions && !loops; r++)
        if (node->regions[r]->nnodes > region->nnodes)
            region = node->regions[r];
    for (uint32_t i = 0; i < region->narguments; i++)
        c->map[region->arguments[i]] = c->map[node->operands[i + sf_first_entering(node)]];
    clone_nodes(c, region, block);
    for (uint32_t r = 0; r < node->nresults; r++)
        c->map[node->result + r] = c->map[region->results[r]];
}

static void clone_around(cloning *c, const sf_node *node, sf_block *const *regions, sf_block *block)
{
    const sf_type *only, **types = &only;
    if (node->nresults > 1)
        types = SF_ARRAY(&c->scratch, node->nresults, const sf_type *);
    for (uint32_t r = 0; r < node->nresults; r++)
        types[r] = sf_type_of(c->from, node->result + r);
    sf_node_spec spec = sf_spec_like(node);
    spec.operands = node->operands;
    spec.types = types;
    spec.attrs = node->attrs;
    spec.regions = regions;
    spec.recomputed = node->recomputed;
    const sf_node *added = sf_graph_add(c->to, block, &spec);
    map_values(c, added->noperands, added->operands);
    for (uint32_t r = 0; r < node->nresults; r++)
        c->map[node->result + r] = added->result + r;
}

static void clone_node(cloning *c, const sf_node *node, sf_block *block)
{
    sf_block **regions = NULL;
    if (node->nregions > 0)
        regions = SF_ARRAY(&c->scratch, node->nregions, sf_block *);
    for (uint32_t r = 0; r < node->nregions; r++) {
        regions[r] = sf_block_new(c->to);
        clone_block(c, node->regions[r], regions[r]);
    }
    clone_around(c, node, regions, block);
}

static void clone_nodes(cloning *c, const sf_block *block, sf_block *copy)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = c->from->nodes[block->nodes[i]];
        sf_mark mark = sf_arena_mark(&c->scratch);
        if (c->opens && node->def->control != SF_CONTROL_NONE)
            open_region(c, node, copy);
        else
            clone_node(c, node, copy);
        sf_arena_reset(&c->scratch, mark);
    }
}

static void clone_block(cloning *c, const sf_block *block, sf_block *copy)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        c->map[block->arguments[i]] =
            sf_block_argument(c->to, copy, sf_type_of(c->from, block->arguments[i]));
    clone_nodes(c, block, copy);
    sf_block_return(c->to, copy, block->nresults, block->results);
    map_values(c, copy->nresults, copy->results);
}

sf_block *sf_block_clone(const sf_graph *from, const sf_block *block, sf_graph *to, sf_value *map)
{
    cloning c = {.from = from, .to = to, .map = map};
    sf_block *copy = sf_block_new(to);
    clone_block(&c, block, copy);
    sf_arena_free(&c.scratch);
    return copy;
}

void sf_node_clone(const sf_graph *from, const sf_node *node, sf_graph *to, sf_block *block,
                   sf_value *map)
{
    cloning c = {.from = from, .to = to, .map = map};
    clone_node(&c, node, block);
    sf_arena_free(&c.scratch);
}

void sf_node_clone_around(const sf_graph *from, const sf_node *node, sf_block *const *regions,
                          sf_graph *to, sf_block *block, sf_value *map)
{
    cloning c = {.from = from, .to = to, .map = map};
    clone_around(&c, node, regions, block);
    sf_arena_free(&c.scratch);
}

void sf_graph_clone_head(const sf_graph *from, sf_graph *to)
{
    to->name = from->name;
    to->has_scopes = from->has_scopes;
    to->scopes_guessed = from->scopes_guessed;
    to->kernels = from->kernels;
    to->compiled = from->compiled;
    if (from->arguments)
        to->arguments = sf_arena_copy(&to->arena, from->arguments,
                                      from->top->narguments * sizeof *from->arguments);
    if (from->results)
        to->results =
            sf_arena_copy(&to->arena, from->results, from->top->nresults * sizeof *from->results);
}

static sf_graph *clone_graph(const sf_graph *graph, bool opens)
{
    cloning c = {.from = graph, .to = sf_graph_new(graph->pool), .opens = opens};
    sf_graph *to = c.to;
    c.map = sf_alloc(graph->nvalues * sizeof *c.map);
    clone_block(&c, graph->top, to->top);
    sf_graph_clone_head(graph, to);
    for (uint32_t i = 0; graph->arguments && i < graph->top->narguments; i++)
        if (graph->arguments[i].gradient != SF_NONE)
            to->arguments[i].gradient = c.map[graph->arguments[i].gradient];
    sf_free(c.map);
    sf_arena_free(&c.scratch);
    return to;
}

sf_graph *sf_graph_clone(const sf_graph *graph)
{
    return clone_graph(graph, false);
}

sf_graph *sf_graph_clone_iteration(const sf_graph *graph)
{
    return clone_graph(graph, true);
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
