/* The common part of nodes whose op, types, attributes and layouts are the same. */
#include <string.h>

#include "base/hash.h"
#include "local/shard/shard_builder.h"

static uint32_t shape_tensors(const sf_node *node)
{
    return node->noperands + node->nresults;
}

static uint64_t hash_shape_node(const local_node *n)
{
    uint64_t hash = sf_hash_mix((uint64_t)n->op.def->id, n->node->noperands);
    for (int i = 0; i < n->op.noperands; i++)
        hash = sf_hash_mix(hash, (uint64_t)(uintptr_t)n->op.in[i]);
    for (int i = 0; i < n->op.def->nattrs; i++)
        hash = sf_hash_mix(hash, (uint64_t)(uintptr_t)n->node->attrs[i]);
    for (uint32_t t = 0; t < shape_tensors(n->node); t++)
        hash = sf_hash_mix(hash, sf_layout_hash(&n->layouts[t]));
    return hash;
}

/* The shape has the whole types of its node after those of the shards. */
static bool has_node_shape(const void *item, const void *key)
{
    const local_shape *shape = item;
    const local_node *n = key;
    const sf_node *a = shape->node, *b = n->node;
    uint32_t count = shape_tensors(b);
    if (a->def != b->def || a->noperands != b->noperands || a->nresults != b->nresults ||
        (b->def->nattrs > 0 &&
         memcmp(a->attrs, b->attrs, (size_t)b->def->nattrs * sizeof *b->attrs) != 0) ||
        memcmp(shape->types + count, n->op.in, count * sizeof *n->op.in) != 0)
        return false;
    for (uint32_t t = 0; t < count; t++)
        if (!sf_layout_equal(&shape->layouts[t], &n->layouts[t]))
            return false;
    return true;
}

static sf_status make_node_shape(local_builder *b, const local_node *n, local_shape *shape)
{
    const sf_node *node = n->node;
    uint32_t count = shape_tensors(node);
    *shape = (local_shape){.node = node, .layouts = n->layouts};
    SF_TRY(local_check(b, n, shape));
    shape->types = SF_ARRAY(&b->arena, 2 * count, const sf_type *);
    for (uint32_t t = 0; t < count; t++) {
        shape->types[count + t] = n->op.in[t];
        shape->types[t] = local_type(b, n->op.in[t], &n->layouts[t]);
    }
    shape->attrs = SF_ARRAY(&b->arena, node->def->nattrs, const sf_attr *);
    if (node->def->nattrs)
        memcpy(shape->attrs, node->attrs, (size_t)node->def->nattrs * sizeof *shape->attrs);
    return SF_OK;
}

/* Operands and results of an sf_op of a node follow each other in one array. A node with regions
 * has its own list of captured values. */
sf_status local_find_shape(local_builder *b, local_node *n)
{
    sf_intern_slot *slot = NULL;
    if (n->node->nregions == 0) {
        slot = sf_intern_find(&b->shapes, &b->arena, hash_shape_node(n), has_node_shape, n);
        n->shape = (local_shape *)slot->item;
        if (n->shape)
            return SF_OK;
    }
    n->shape = SF_NEW(&b->arena, local_shape);
    if (slot)
        slot->item = n->shape;
    return make_node_shape(b, n, n->shape);
}
