/* The op itself, on shards: the node of the step with other types. */
#include "ir/clone.h"
#include "local/shard/shard_builder.h"
#include "op/node_builder.h"

/* Regions are copied unchanged: values of the step in them are whole. */

/* Values of the top block that regions read come after the node's operands
 * (plan/plan_reshards.h). */
typedef struct capturing {
    local_builder *b;
    uint32_t next; /* of reshards->reads */
} capturing;

static void capture_same_value(void *context, sf_value value)
{
    capturing *c = context;
    if (c->b->reshards->made[value] != SF_NONE)
        c->b->inner[value] = local_value(c->b, c->b->reshards->reads[c->next++]);
}

/* Results of the copy are recorded as whole, too. */
static void record_inner(local_builder *b, const sf_block *block)
{
    static const sf_layout replicated;
    for (uint32_t i = 0; i < block->narguments; i++)
        local_record(b, b->inner[block->arguments[i]], block->arguments[i], &replicated);
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = b->whole->nodes[block->nodes[i]];
        for (uint32_t r = 0; r < node->nregions; r++)
            record_inner(b, node->regions[r]);
        for (uint32_t r = 0; r < node->nresults; r++)
            local_record(b, b->inner[node->result + r], node->result + r, &replicated);
    }
}

static sf_block *copy_same_region(local_builder *b, const sf_block *block)
{
    sf_block *copy = sf_block_clone(b->whole, block, b->graph, b->inner);
    record_inner(b, block);
    return copy;
}

sf_status local_op_as(local_builder *b, const local_node *n, const sf_value *operands,
                      const sf_type *const *types, sf_value *out)
{
    const sf_node *node = n->node;
    const sf_opdef *def = node->def;
    bool is_own = types == n->types; /* the op on its own shards, not on others */
    const sf_attr **attrs = n->shape->attrs;
    sf_block **regions = SF_ARRAY(&b->scratch, node->nregions, sf_block *);
    sf_node *added;
    if (!is_own)
        attrs = sf_arena_copy(&b->scratch, attrs, (size_t)def->nattrs * sizeof *attrs);
    if (def->local && !(is_own && n->shape->is_built))
        def->local(&n->op, types, attrs);
    capturing c = {b, b->reshards->first_read[node->id] + node->noperands};
    for (uint32_t i = 0; i < node->nregions; i++)
        sf_block_uses(b->whole, node->regions[i], capture_same_value, &c);
    for (uint32_t i = 0; i < node->nregions; i++)
        regions[i] = copy_same_region(b, node->regions[i]);
    sf_node_spec spec = sf_spec_like(node);
    spec.operands = operands;
    spec.types = types + node->noperands;
    spec.attrs = attrs;
    spec.regions = regions;
    if (is_own && n->shape->is_built)
        added = sf_graph_add(b->graph, b->block, &spec);
    else
        SF_TRY(sf_build(b->graph, b->block, &spec, b->diag, &added));
    n->shape->is_built = n->shape->is_built || is_own;
    for (uint32_t i = 0; i < node->nresults; i++)
        out[i] = added->result + i;
    return SF_OK;
}

sf_status local_same_op(local_builder *b, local_node *n, const sf_value *operands)
{
    return local_op_as(b, n, operands, n->types, n->out);
}
