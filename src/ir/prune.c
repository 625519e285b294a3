#include "base/mem.h"
#include "ir/graph.h"
#include "ir/opdef.h"

struct pruner {
    sf_graph *graph;
    bool *live;        /* by node id */
    bool *needed;      /* by value id */
    sf_value *renamed; /* by value id */
};

static void need(struct pruner *pruner, const sf_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        pruner->needed[values[i]] = true;
}

/* Backwards over the block: what a live node uses is needed. */
static void mark_block(struct pruner *pruner, const sf_block *block)
{
    need(pruner, block->results, block->nresults);
    for (uint32_t i = block->nnodes; i-- > 0;) {
        const sf_node *node = pruner->graph->nodes[block->nodes[i]];
        bool live = sf_node_has_effect(pruner->graph, node);
        for (uint32_t j = 0; j < node->nresults; j++)
            live = live || pruner->needed[node->result + j];
        pruner->live[node->id] = live;
        if (!live)
            continue;
        need(pruner, node->operands, node->noperands);
        for (uint32_t j = 0; j < node->nregions; j++)
            mark_block(pruner, node->regions[j]);
    }
}

static void rename_values(struct pruner *pruner, sf_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = pruner->renamed[values[i]];
}

static void rename_block(struct pruner *pruner, sf_block *block)
{
    uint32_t kept = 0;
    rename_values(pruner, block->arguments, block->narguments);
    rename_values(pruner, block->results, block->nresults);
    for (uint32_t i = 0; i < block->nnodes; i++) {
        sf_node *node = pruner->graph->nodes[block->nodes[i]];
        if (!pruner->live[block->nodes[i]])
            continue;
        rename_values(pruner, node->operands, node->noperands);
        if (node->nresults)
            node->result = pruner->renamed[node->result];
        for (uint32_t j = 0; j < node->nregions; j++)
            rename_block(pruner, node->regions[j]);
        block->nodes[kept++] = node->id;
    }
    block->nnodes = kept;
}

static void keep_argument_values(struct pruner *pruner, const sf_block *block)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        pruner->needed[block->arguments[i]] = true;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = pruner->graph->nodes[block->nodes[i]];
        for (uint32_t j = 0; pruner->live[node->id] && j < node->nregions; j++)
            keep_argument_values(pruner, node->regions[j]);
    }
}

/* Values and nodes keep their order; node ids are written into the nodes, which rename_block then
 * reads through the old array. */
static void compact(struct pruner *pruner)
{
    sf_graph *graph = pruner->graph;
    uint32_t *new_ids = sf_alloc(graph->nnodes * sizeof *new_ids);
    uint32_t nnodes = 0, nvalues = 0;
    for (size_t i = 0; i < graph->nnodes; i++)
        new_ids[i] = pruner->live[i] ? nnodes++ : SF_NONE;
    for (size_t i = 0; i < graph->nvalues; i++) {
        sf_value_info info = graph->values[i];
        bool keep = info.node == SF_NONE ? pruner->needed[i] : pruner->live[info.node];
        if (!keep)
            continue;
        if (info.node != SF_NONE)
            info.node = new_ids[info.node];
        pruner->renamed[i] = nvalues;
        graph->values[nvalues++] = info;
    }
    for (size_t i = 0; i < graph->nnodes; i++)
        graph->nodes[i]->id = new_ids[i];
    rename_block(pruner, graph->top);
    for (size_t i = 0; i < graph->nnodes; i++)
        if (new_ids[i] != SF_NONE)
            graph->nodes[new_ids[i]] = graph->nodes[i];
    graph->nnodes = nnodes;
    graph->nvalues = nvalues;
    sf_free(new_ids);
}

void sf_graph_prune(sf_graph *graph)
{
    struct pruner pruner = {.graph = graph};
    pruner.live = sf_alloc(graph->nnodes * sizeof *pruner.live);
    pruner.needed = sf_alloc(graph->nvalues * sizeof *pruner.needed);
    pruner.renamed = sf_alloc(graph->nvalues * sizeof *pruner.renamed);
    mark_block(&pruner, graph->top);
    keep_argument_values(&pruner, graph->top);
    compact(&pruner);
    sf_free(pruner.renamed);
    sf_free(pruner.needed);
    sf_free(pruner.live);
}
