/* The canonical hash of a graph.
 *
 * Every value gets a hash from its maker's op, attributes, result type and the hashes of its
 * operands, so equal computations hash equally wherever they are; the operands of a commutative op
 * enter in either order. The graph's hash combines its argument types, its results, and its nodes
 * with effects in order. Nothing else enters. */
#include "base/boundary.h"
#include "base/hash.h"
#include "base/mem.h"
#include "ir/graph.h"
#include "ir/opdef.h"

struct hasher {
    const sf_graph *graph;
    uint64_t *values; /* by value id */
    uint64_t depth;   /* of the block, so that arguments of nested blocks differ */
};

static uint64_t hash_type_text(uint64_t hash, const sf_type *type)
{
    hash = sf_hash_mix(hash, (uint64_t)type->dtype);
    hash = sf_hash_mix(hash, (uint64_t)type->rank);
    for (int i = 0; i < type->rank; i++)
        hash = sf_hash_mix(hash, (uint64_t)type->dims[i]);
    return hash;
}

static uint64_t hash_block(struct hasher *hasher, const sf_block *block);

static uint64_t hash_operands(const struct hasher *hasher, const sf_node *node, uint64_t hash)
{
    if (node->def->commutative && node->noperands == 2) {
        uint64_t a = hasher->values[node->operands[0]], b = hasher->values[node->operands[1]];
        return sf_hash_mix(sf_hash_mix(hash, a < b ? a : b), a < b ? b : a);
    }
    for (uint32_t i = 0; i < node->noperands; i++)
        hash = sf_hash_mix(hash, hasher->values[node->operands[i]]);
    return hash;
}

static uint64_t hash_graph_node(struct hasher *hasher, const sf_node *node)
{
    const sf_opdef *def = node->def;
    uint64_t hash = sf_hash_bytes(11, def->dialect, strlen(def->dialect));
    hash = sf_hash_bytes(hash, def->name, strlen(def->name));
    for (int i = 0; i < def->nattrs; i++)
        if (!def->attrs[i].note)
            hash = sf_hash_mix(hash, node->attrs[i] ? node->attrs[i]->hash : 0);
    hash = hash_operands(hasher, node, hash);
    for (uint32_t i = 0; i < node->nregions; i++)
        hash = sf_hash_mix(hash, hash_block(hasher, node->regions[i]));
    for (uint32_t i = 0; i < node->nresults; i++)
        hasher->values[node->result + i] =
            hash_type_text(sf_hash_mix(hash, i), sf_type_of(hasher->graph, node->result + i));
    return hash;
}

static uint64_t hash_block(struct hasher *hasher, const sf_block *block)
{
    uint64_t hash = sf_hash_mix(13, ++hasher->depth);
    for (uint32_t i = 0; i < block->narguments; i++) {
        uint64_t argument = sf_hash_mix(sf_hash_mix(17, hasher->depth), i);
        argument = hash_type_text(argument, sf_type_of(hasher->graph, block->arguments[i]));
        hasher->values[block->arguments[i]] = argument;
        hash = sf_hash_mix(hash, argument);
    }
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = hasher->graph->nodes[block->nodes[i]];
        uint64_t of_node = hash_graph_node(hasher, node);
        if (sf_node_has_effect(hasher->graph, node))
            hash = sf_hash_mix(hash, of_node);
    }
    for (uint32_t i = 0; i < block->nresults; i++)
        hash = sf_hash_mix(hash, hasher->values[block->results[i]]);
    hasher->depth--;
    return hash;
}

static uint64_t *hash_values(const sf_graph *graph, uint64_t *hash)
{
    struct hasher hasher = {.graph = graph};
    hasher.values = sf_alloc(graph->nvalues * sizeof *hasher.values);
    *hash = hash_block(&hasher, graph->top);
    return hasher.values;
}

uint64_t *sf_value_hashes(const sf_graph *graph)
{
    uint64_t hash;
    return hash_values(graph, &hash);
}

uint64_t sf_graph_hash(const sf_graph *graph)
{
    SF_NEED_OR(0, graph);
    uint64_t hash = graph->hash;
    if (hash == 0)
        sf_free(hash_values(graph, &hash));
    return hash;
}
