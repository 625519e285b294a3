/* The op itself, on pieces: the node of the step with other types. */
#include <string.h>

#include "base/mem.h"
#include "local/build.h"
#include "op/build.h"

/* Regions are copied as they are: what they see of the step is whole. */

static sf_status capture(local_builder *b, const sf_block *block);

static sf_status capture_values(local_builder *b, uint32_t count, const sf_value *values)
{
    static const sf_layout replicated;
    for (uint32_t i = 0; i < count; i++)
        if (b->versions[values[i]])
            SF_TRY(local_value(b, values[i], &replicated, &b->inner[values[i]]));
    return SF_OK;
}

/* Makes all values of the top block that are used inside stand ready. */
static sf_status capture(local_builder *b, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = b->whole->nodes[block->nodes[i]];
        SF_TRY(capture_values(b, node->noperands, node->operands));
        for (uint32_t r = 0; r < node->nregions; r++)
            SF_TRY(capture(b, node->regions[r]));
    }
    return capture_values(b, block->nresults, block->results);
}

static void keep_inner(local_builder *b, sf_value whole, sf_value value)
{
    static const sf_layout replicated;
    b->inner[whole] = value;
    local_record(b, value, whole, &replicated);
}

static const sf_value *inner_values(local_builder *b, uint32_t count, const sf_value *values)
{
    sf_value *out = SF_ARRAY(&b->scratch, count, sf_value);
    for (uint32_t i = 0; i < count; i++)
        out[i] = b->inner[values[i]];
    return out;
}

static sf_block *copy_block(local_builder *b, const sf_block *block)
{
    sf_block *copy = sf_block_new(b->graph);
    for (uint32_t i = 0; i < block->narguments; i++)
        keep_inner(b, block->arguments[i],
                   sf_block_argument(b->graph, copy, sf_type_of(b->whole, block->arguments[i])));
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = b->whole->nodes[block->nodes[i]];
        sf_block **regions = SF_ARRAY(&b->scratch, node->nregions, sf_block *);
        const sf_type **types = SF_ARRAY(&b->scratch, node->nresults, const sf_type *);
        for (uint32_t r = 0; r < node->nregions; r++)
            regions[r] = copy_block(b, node->regions[r]);
        for (uint32_t r = 0; r < node->nresults; r++)
            types[r] = sf_type_of(b->whole, node->result + r);
        sf_node_spec spec = {.def = node->def,
                             .noperands = node->noperands,
                             .operands = inner_values(b, node->noperands, node->operands),
                             .nresults = node->nresults,
                             .types = types,
                             .attrs = node->attrs,
                             .nregions = node->nregions,
                             .regions = regions,
                             .scope = node->scope,
                             .phase = node->phase,
                             .loc = node->loc};
        const sf_node *added = sf_graph_add(b->graph, copy, &spec);
        for (uint32_t r = 0; r < node->nresults; r++)
            keep_inner(b, node->result + r, added->result + r);
    }
    sf_block_return(b->graph, copy, block->nresults,
                    inner_values(b, block->nresults, block->results));
    return copy;
}

sf_status local_op_as(local_builder *b, const local_node *n, const sf_value *operands,
                      const sf_type *const *types, sf_value *out)
{
    const sf_node *node = n->node;
    const sf_opdef *def = node->def;
    const sf_attr **attrs = SF_ARRAY(&b->scratch, def->nattrs, const sf_attr *);
    sf_block **regions = SF_ARRAY(&b->scratch, node->nregions, sf_block *);
    sf_node *added;
    if (def->nattrs)
        memcpy(attrs, node->attrs, (size_t)def->nattrs * sizeof *attrs);
    if (def->local)
        def->local(&n->op, types, attrs);
    for (uint32_t i = 0; i < node->nregions; i++) {
        SF_TRY(capture(b, node->regions[i]));
        regions[i] = copy_block(b, node->regions[i]);
    }
    sf_node_spec spec = {.def = def,
                         .noperands = node->noperands,
                         .operands = operands,
                         .nresults = node->nresults,
                         .types = types + node->noperands,
                         .attrs = attrs,
                         .nregions = node->nregions,
                         .regions = regions,
                         .scope = node->scope,
                         .phase = node->phase,
                         .loc = node->loc};
    SF_TRY(sf_build(b->graph, b->block, &spec, b->diag, &added));
    for (uint32_t i = 0; i < node->nresults; i++)
        out[i] = added->result + i;
    return SF_OK;
}

sf_status local_same_op(local_builder *b, local_node *n, const sf_value *operands)
{
    return local_op_as(b, n, operands, n->types, n->out);
}
