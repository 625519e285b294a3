#include "front/close_regions.h"

#include <string.h>

#include "op/op.h"

typedef struct closing {
    sf_graph *graph;
    sf_arena arena, scratch; /* for all, for one node */
    uint32_t *within; /* by value: the node at hand, counted from 1, where its regions make it, */
    sf_value *inside; /* or its value in the current region; given if not SF_NONE */
    size_t nwithin, ninside, within_capacity, inside_capacity;
    uint32_t number; /* of the node at hand */
    sf_value *given;
    size_t ngiven, capacity;
    sf_value *constants; /* that the region at hand uses */
    size_t nconstants, constant_capacity;
} closing;

static void note_values(closing *c)
{
    while (c->nwithin < c->graph->nvalues) {
        SF_PUSH(&c->arena, c->within, c->nwithin, c->within_capacity, 0);
        SF_PUSH(&c->arena, c->inside, c->ninside, c->inside_capacity, SF_NONE);
    }
}

static void mark_made(closing *c, const sf_block *block)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        c->within[block->arguments[i]] = c->number;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = c->graph->nodes[block->nodes[i]];
        for (uint32_t r = 0; r < node->nresults; r++)
            c->within[node->result + r] = c->number;
        for (uint32_t r = 0; r < node->nregions; r++)
            mark_made(c, node->regions[r]);
    }
}

static bool is_outer_constant(const closing *c, sf_value value)
{
    const sf_node *maker = sf_maker(c->graph, value);
    return maker && sf_is(maker, SF_OP_CONSTANT);
}

/* Calls `see` for each use of a value that is made outside of the node. */
typedef void see_outer(closing *c, sf_value *use);

static void visit_outer(closing *c, uint32_t count, sf_value *uses, see_outer *see)
{
    for (uint32_t i = 0; i < count; i++)
        if (c->within[uses[i]] != c->number)
            see(c, &uses[i]);
}

static void visit_block(closing *c, const sf_block *block, see_outer *see)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        sf_node *node = c->graph->nodes[block->nodes[i]];
        visit_outer(c, node->noperands, node->operands, see);
        for (uint32_t r = 0; r < node->nregions; r++)
            visit_block(c, node->regions[r], see);
    }
    visit_outer(c, block->nresults, block->results, see);
}

static void find_given(closing *c, sf_value *use)
{
    if (is_outer_constant(c, *use) || c->inside[*use] != SF_NONE)
        return;
    c->inside[*use] = *use;
    SF_PUSH(&c->scratch, c->given, c->ngiven, c->capacity, *use);
}

static void find_constant(closing *c, sf_value *use)
{
    if (!is_outer_constant(c, *use) || c->inside[*use] != SF_NONE)
        return;
    c->inside[*use] = *use;
    SF_PUSH(&c->scratch, c->constants, c->nconstants, c->constant_capacity, *use);
}

static void replace_use(closing *c, sf_value *use)
{
    *use = c->inside[*use];
}

/* Copies of the constants, before all other nodes. */
static void copy_constants(closing *c, sf_block *block)
{
    uint32_t before = block->nnodes, count = (uint32_t)c->nconstants;
    for (uint32_t i = 0; i < count; i++) {
        const sf_node *node = sf_maker(c->graph, c->constants[i]);
        const sf_type *type = sf_type_of(c->graph, node->result);
        sf_node_spec spec = sf_spec_like(node);
        spec.types = &type;
        spec.attrs = node->attrs;
        c->inside[node->result] = sf_graph_add(c->graph, block, &spec)->result;
    }
    if (count == 0)
        return;
    uint32_t *copies =
        sf_arena_copy(&c->scratch, block->nodes + before, count * sizeof *block->nodes);
    memmove(block->nodes + count, block->nodes, before * sizeof *block->nodes);
    memcpy(block->nodes, copies, count * sizeof *copies);
}

static void close_region(closing *c, sf_block *block)
{
    c->constants = NULL;
    c->nconstants = c->constant_capacity = 0;
    visit_block(c, block, find_constant);
    copy_constants(c, block);
    for (size_t i = 0; i < c->ngiven; i++)
        c->inside[c->given[i]] =
            sf_block_argument(c->graph, block, sf_type_of(c->graph, c->given[i]));
    note_values(c);
    mark_made(c, block);
    visit_block(c, block, replace_use);
    for (size_t i = 0; i < c->nconstants; i++)
        c->inside[c->constants[i]] = SF_NONE;
}

static void give_operands(closing *c, sf_node *node)
{
    uint32_t count = node->noperands + (uint32_t)c->ngiven;
    sf_value *operands = SF_ARRAY(&c->graph->arena, count, sf_value);
    if (node->noperands > 0)
        memcpy(operands, node->operands, node->noperands * sizeof *operands);
    if (c->ngiven > 0)
        memcpy(operands + node->noperands, c->given, c->ngiven * sizeof *operands);
    node->operands = operands;
    node->noperands = count;
}

static void close_node(closing *c, sf_node *node)
{
    sf_mark mark = sf_arena_mark(&c->scratch);
    c->number = node->id + 1;
    c->given = NULL;
    c->ngiven = c->capacity = 0;
    for (uint32_t r = 0; r < node->nregions; r++)
        mark_made(c, node->regions[r]);
    for (uint32_t r = 0; r < node->nregions; r++)
        visit_block(c, node->regions[r], find_given);
    for (uint32_t r = 0; r < node->nregions; r++)
        close_region(c, node->regions[r]);
    for (size_t i = 0; i < c->ngiven; i++)
        c->inside[c->given[i]] = SF_NONE;
    give_operands(c, node);
    sf_arena_reset(&c->scratch, mark);
}

/* Inner ones first: the outer may have to be given the operands of inner ones, too. */
static void close_block(closing *c, const sf_block *block)
{
    uint32_t count = block->nnodes;
    for (uint32_t i = 0; i < count; i++) {
        sf_node *node = c->graph->nodes[block->nodes[i]];
        for (uint32_t r = 0; r < node->nregions; r++)
            close_block(c, node->regions[r]);
        if (node->def->control != SF_CONTROL_NONE)
            close_node(c, node);
    }
}

void sf_graph_close(sf_graph *graph)
{
    closing c = {.graph = graph};
    note_values(&c);
    close_block(&c, graph->top);
    sf_arena_free(&c.scratch);
    sf_arena_free(&c.arena);
}
