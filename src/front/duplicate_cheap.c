#include "front/duplicate_cheap.h"

#include <string.h>

#include "base/mem.h"
#include "op/op.h"
#include "op/slots.h"

typedef struct unsharing {
    sf_graph *graph;
    size_t count;     /* of nodes, at first */
    uint32_t *reader; /* by node: who has it, plus one */
} unsharing;

static bool is_free(const sf_node *node)
{
    return sf_is(node, SF_OP_BROADCAST_IN_DIM) ||
           (sf_is(node, SF_OP_CONSTANT) && node->attrs[SF_CONSTANT_VALUE]->dense.splat);
}

/* In the place of who reads it. */
static sf_value copy_shared_node(sf_graph *graph, sf_block *block, const sf_node *node,
                                 const sf_node *reader)
{
    const sf_type *type = sf_type_of(graph, node->result);
    sf_node_spec spec = {.def = node->def,
                         .noperands = node->noperands,
                         .operands = node->operands,
                         .nresults = 1,
                         .types = &type,
                         .attrs = node->attrs,
                         .scope = reader->scope,
                         .phase = reader->phase,
                         .loc = node->loc,
                         .recomputed = node->recomputed};
    return sf_graph_add(graph, block, &spec)->result;
}

/* A node that reads a value twice keeps one. */
static void unshare_operands(unsharing *u, sf_block *block, uint32_t id)
{
    for (uint32_t i = 0; i < u->graph->nodes[id]->noperands; i++) {
        sf_node *node = u->graph->nodes[id];
        sf_value value = node->operands[i], own = value;
        sf_node *maker = sf_maker(u->graph, value);
        if (!maker || maker->id >= u->count || !is_free(maker))
            continue;
        if (!u->reader[maker->id]) {
            maker->scope = node->scope;
            maker->phase = node->phase;
        } else if (u->reader[maker->id] != id + 1) {
            own = copy_shared_node(u->graph, block, maker, node);
            for (uint32_t j = i + 1; j < node->noperands; j++)
                if (node->operands[j] == value)
                    node->operands[j] = own;
        }
        u->reader[maker->id] = id + 1;
        node->operands[i] = own;
    }
}

/* Copies come before their readers. */
static void unshare_block(unsharing *u, sf_block *block)
{
    uint32_t *order = NULL, count = block->nnodes;
    size_t placed = 0, capacity = 0;
    sf_arena arena = {0};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = block->nodes[i], before = block->nnodes;
        unshare_operands(u, block, id);
        for (uint32_t copy = before; copy < block->nnodes; copy++)
            SF_PUSH(&arena, order, placed, capacity, block->nodes[copy]);
        SF_PUSH(&arena, order, placed, capacity, id);
        for (uint32_t r = 0; r < u->graph->nodes[id]->nregions; r++)
            unshare_block(u, u->graph->nodes[id]->regions[r]);
    }
    if (placed > 0)
        memcpy(block->nodes, order, placed * sizeof *order);
    sf_arena_free(&arena);
}

void sf_graph_unshare(sf_graph *graph)
{
    unsharing u = {.graph = graph, .count = graph->nnodes};
    u.reader = sf_alloc((graph->nnodes + 1) * sizeof *u.reader);
    unshare_block(&u, graph->top);
    sf_free(u.reader);
}
