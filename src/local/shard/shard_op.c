/* The shard of an op.
 *
 * For nearly every op, the same op on shards gives the shard of the result; its definition adapts
 * sizes in attributes (sf_opdef.local). This file has the other ops: those that depend on positions
 * (constant, iota, gather, scatter, dynamic_update_slice), those that count a term once (the
 * initial value of reduce, the operand of scatter), and those whose shard is cut from the whole
 * (random bits, kernel positions of convolutions). */
#include <string.h>

#include "base/mem.h"
#include "local/shard/shard_builder.h"
#include "op/node_builder.h"
#include "op/slots.h"

/* Copies the elements of the shard; `index` is local. */
static void cut_elements(const local_builder *b, const sf_dense *dense, const sf_layout *layout,
                         const sf_type *shard, void *out)
{
    int64_t index[SF_MAX_RANK] = {0}, global[SF_MAX_RANK], at = 0;
    size_t width = sf_dtype_get(shard->dtype)->bytes;
    do {
        for (int d = 0; d < shard->rank; d++)
            global[d] =
                sf_layout_global(layout, b->mesh, b->rank, d, dense->type->dims[d], index[d]);
        int64_t from = sf_flat_index(shard->rank, dense->type->dims, global);
        memcpy((char *)out + (size_t)at++ * width, (const char *)dense->data + (size_t)from * width,
               width);
    } while (sf_next_index(shard->rank, shard->dims, index));
}

static sf_status constant_piece(local_builder *b, local_node *n)
{
    const sf_dense *dense = &n->node->attrs[SF_CONSTANT_VALUE]->dense;
    const sf_type *shard = n->types[0];
    const void *data = dense->data;
    if (data && !dense->splat && b->microbatch != SF_NONE) {
        static const sf_layout replicated;
        const sf_attr *whole = n->node->attrs[SF_CONSTANT_VALUE];
        local_resharding m = {dense->type, &replicated, &n->layouts[0], SF_RESHARD_SLICE, 1};
        sf_value all = emit_op(b, SF_OP_CONSTANT, 0, NULL, &whole, dense->type);
        n->out[0] = local_reshard_alone(b, all, &m);
        return SF_OK;
    }
    if (data && !dense->splat && shard->count > 0) {
        void *cut = sf_arena_alloc(&b->scratch, (size_t)sf_type_bytes(shard));
        cut_elements(b, dense, &n->layouts[0], shard, cut);
        data = cut;
    }
    const sf_attr *attr = sf_attr_dense(b->graph->pool, shard, dense->splat, data);
    n->out[0] = emit_op(b, SF_OP_CONSTANT, 0, NULL, &attr, shard);
    return SF_OK;
}

/* Positions are counted in integers and rounded once. */
static sf_status iota_piece(local_builder *b, local_node *n)
{
    int dim = (int)sf_op_int(&n->op, SF_IOTA_DIMENSION, 0);
    int64_t size = n->op.out[0]->dims[dim];
    sf_dtype dtype = n->types[0]->dtype;
    if (n->types[0]->dims[dim] == size)
        return local_same_op(b, n, n->in);
    sf_value positions =
        local_positions(b, &n->layouts[0], dim, size, size <= INT32_MAX ? SF_S32 : SF_S64);
    n->out[0] = emit_broadcast(b, emit_convert(b, positions, dtype), n->types[0], &dim);
    return SF_OK;
}

/* The axes that a reduce factor is split along. */
static sf_axes reduce_axes(const local_builder *b, const local_node *n)
{
    sf_axes axes = 0;
    for (int a = 0; a < b->mesh->naxes; a++)
        if (n->shape->strategies[a].kind == SF_RUN_FACTOR &&
            n->shape->factoring.factors[n->shape->strategies[a].factor].role == SF_REDUCE)
            axes |= 1u << a;
    return axes;
}

/* The initial value of a fold counts once: on the first of the ranks that share the fold. */
static sf_status counted_once(local_builder *b, local_node *n, int operand, int slot)
{
    sf_axes axes = reduce_axes(b, n);
    if (axes)
        n->in[operand] =
            local_mask(b, n->in[operand], axes, (sf_monoid)sf_op_int(&n->op, slot, SF_MONOID_NONE));
    return SF_OK;
}

static sf_status reduce_piece(local_builder *b, local_node *n)
{
    SF_TRY(counted_once(b, n, n->op.noperands / 2, SF_REDUCE_BODY));
    return local_same_op(b, n, n->in);
}

static sf_status scatter_piece(local_builder *b, local_node *n)
{
    SF_TRY(counted_once(b, n, 0, SF_SCATTER_BODY));
    return local_scatter(b, n);
}

/* A shard of the kernel is put at its position in the window, with zeros around it. */
static sf_status convolution_piece(local_builder *b, local_node *n)
{
    sf_ints spatial = sf_op_ints(&n->op, SF_CONV_RHS_SPATIAL);
    const sf_layout *kernel = &n->layouts[1];
    sf_axes axes = 0;
    for (int a = 0; a < b->mesh->naxes; a++)
        for (int i = 0; i < spatial.count; i++)
            if (kernel->axes[a].kind == SF_SPLIT && kernel->axes[a].dim == spatial.at[i])
                axes |= 1u << a;
    if (axes && b->microbatch != SF_NONE)
        return sf_fail(b->diag, SF_EUNSUPPORTED, n->node->loc,
                       "a convolution in chunks of its kernel positions");
    if (axes) {
        n->in[1] = local_embed(b, n->in[1], n->op.in[1], kernel, axes);
        n->types[1] = sf_type_of(b->graph, n->in[1]);
    }
    return local_same_op(b, n, n->in);
}

/* Draws the whole and keeps a shard: the bits depend on the position in the whole. */
static sf_status random_piece(local_builder *b, local_node *n)
{
    static const sf_layout replicated;
    const sf_type *types[] = {n->op.in[0], n->op.out[0], n->op.out[1]};
    SF_TRY(local_op_as(b, n, n->in, types, n->out));
    const sf_way *way = sf_ways_find(&b->ways, n->op.out[1], &replicated, &n->layouts[2]);
    SF_ASSERT(way->exists);
    const sf_layout *layout = &replicated;
    for (int i = 0; i < way->count; i++) {
        const sf_move *reshard = &way->reshards[i];
        local_resharding m = {n->op.out[1], layout, &reshard->after, reshard->kind, reshard->axes};
        if (sf_group_size(b->mesh, reshard->axes) > 1)
            n->out[1] = local_reshard_alone(b, n->out[1], &m);
        layout = &reshard->after;
    }
    return SF_OK;
}

sf_status local_op(local_builder *b, local_node *n)
{
    switch (n->op.def->id) {
    case SF_OP_CONSTANT:
        return constant_piece(b, n);
    case SF_OP_IOTA:
        return iota_piece(b, n);
    case SF_OP_REDUCE:
        return reduce_piece(b, n);
    case SF_OP_CONVOLUTION:
        return convolution_piece(b, n);
    case SF_OP_GATHER:
        return local_gather(b, n);
    case SF_OP_SCATTER:
        return scatter_piece(b, n);
    case SF_OP_DYNAMIC_UPDATE_SLICE:
        return local_update(b, n);
    case SF_OP_RNG_BIT_GENERATOR:
        return random_piece(b, n);
    case SF_OP_WHILE:
    case SF_OP_CASE:
        return local_control(b, n);
    default:
        return local_same_op(b, n, n->in);
    }
}
