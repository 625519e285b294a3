/* Reshards as nodes: items (shard/reshard_items.h) are brought where the collective wants them, and back, by reshapes and
 * transposes. */
#include <string.h>

#include "local/shard/shard_builder.h"
#include "op/body.h"
#include "op/slots.h"

static sf_value reshape_to_items(local_builder *b, sf_value x, const sf_items *list)
{
    int64_t dims[SF_MAX_ITEMS];
    for (int i = 0; i < list->count; i++)
        dims[i] = list->at[i].size;
    return emit_reshape(b, x, list->count, dims);
}

static sf_value reshape_to(local_builder *b, sf_value x, const sf_type *type)
{
    return emit_reshape(b, x, type->rank, type->dims);
}

/* From [items] to [items of the kind, items kept]. */
static sf_value bring_to_front(local_builder *b, sf_value x, const sf_items *list,
                               sf_item_kind kind)
{
    int order[SF_MAX_ITEMS];
    if (sf_items_in_front(list, kind, order))
        return x;
    return emit_transpose(b, reshape_to_items(b, x, list), order);
}

/* From [items of the kind, items kept], under any shape, to [items]. */
static sf_value update_in_pieces(local_builder *b, sf_value x, const sf_items *list,
                                 sf_item_kind kind)
{
    int order[SF_MAX_ITEMS], place[SF_MAX_ITEMS];
    sf_items front = {.count = list->count};
    if (sf_items_in_front(list, kind, order))
        return x;
    for (int i = 0; i < list->count; i++) {
        front.at[i] = list->at[order[i]];
        place[order[i]] = i;
    }
    return emit_transpose(b, reshape_to_items(b, x, &front), place);
}

/* [size, shard], as one long row if one more dimension would be too many. */
const sf_type *local_rows(const local_builder *b, int64_t size, const sf_type *shard)
{
    int64_t dims[SF_MAX_RANK] = {size, shard->count};
    int rank = 2;
    if (shard->rank < SF_MAX_RANK) {
        rank = shard->rank + 1;
        for (int d = 0; d < shard->rank; d++)
            dims[d + 1] = shard->dims[d];
    }
    return sf_type_get(b->graph->pool, shard->dtype, rank, dims);
}

static const sf_type *row_of_items(const local_builder *b, const sf_type *rows)
{
    return sf_type_get(b->graph->pool, rows->dtype, rows->rank - 1, rows->dims + 1);
}

/* The slice of the micro-batch: the offset of the shard is a value. */
static sf_value slice_of_turn(local_builder *b, sf_value x, const sf_items *list, const sf_type *to)
{
    sf_pool *pool = b->graph->pool;
    sf_value operands[1 + SF_MAX_ITEMS], zero = emit_like(b, b->microbatch, 0);
    int64_t sizes[SF_MAX_ITEMS];
    operands[0] = reshape_to_items(b, x, list);
    for (int i = 0; i < list->count; i++) {
        bool cut = list->at[i].kind == SF_ITEM_TARGET;
        sizes[i] = cut ? 1 : list->at[i].size;
        operands[1 + i] = cut ? b->microbatch : zero;
    }
    const sf_attr *attr = sf_attr_ints(pool, list->count, sizes);
    const sf_type *type = sf_type_get(pool, sf_type_of(b->graph, x)->dtype, list->count, sizes);
    return reshape_to(
        b, emit_op(b, SF_OP_DYNAMIC_SLICE, 1 + (uint32_t)list->count, operands, &attr, type), to);
}

static sf_value slice_items(local_builder *b, sf_value x, const sf_items *list, const sf_type *to)
{
    int64_t starts[SF_MAX_ITEMS], limits[SF_MAX_ITEMS];
    if (b->microbatch != SF_NONE)
        return slice_of_turn(b, x, list, to);
    for (int i = 0; i < list->count; i++) {
        bool cut = list->at[i].kind == SF_ITEM_TARGET;
        starts[i] = cut ? sf_mesh_coordinate(b->mesh, b->rank, list->at[i].axis) : 0;
        limits[i] = cut ? starts[i] + 1 : list->at[i].size;
    }
    return reshape_to(b, emit_slice(b, reshape_to_items(b, x, list), starts, limits), to);
}

/* Nodes are the same on every rank, only their constants differ. */
static sf_value mask_others(local_builder *b, sf_value x, bool is_first, sf_monoid monoid)
{
    sf_value identity = emit_identity(b, monoid, sf_type_of(b->graph, x));
    sf_value chosen = b->microbatch != SF_NONE
                          ? local_is_first_microbatch(b)
                          : emit_number(b, sf_type_scalar(b->graph->pool, SF_PRED), is_first);
    return emit_select(b, chosen, x, identity);
}

/* Whether it is a number that may be counted twice: the initial value of a sum, 0. */
static bool may_repeat(const sf_node *maker, sf_monoid monoid)
{
    const sf_dense *dense = &maker->attrs[SF_CONSTANT_VALUE]->dense;
    sf_dtype dtype = dense->type->dtype, part = sf_part_of(dtype);
    sf_word once[2], recomputed_per_part[2];
    if (!dense->splat || monoid == SF_MONOID_NONE || monoid == SF_MONOID_SECOND)
        return false;
    for (int i = 0; i < sf_parts_of(dtype); i++) {
        if (sf_is_float(part))
            once[i].real = sf_load_f64(part, dense->data, i);
        else
            once[i].integer = (uint64_t)sf_load_i64(part, dense->data, i);
        recomputed_per_part[i] = once[i];
    }
    sf_words_combine(monoid, dtype, recomputed_per_part, once);
    return memcmp(once, recomputed_per_part, (size_t)sf_parts_of(dtype) * sizeof *once) == 0;
}

sf_value local_mask(local_builder *b, sf_value x, sf_axes axes, sf_monoid monoid)
{
    const sf_node *maker = sf_maker(b->graph, x);
    bool is_first = sf_group_place(b->mesh, axes, b->rank) == 0;
    const sf_type *type = sf_type_of(b->graph, x);
    if (!maker || !sf_is(maker, SF_OP_CONSTANT))
        return mask_others(b, x, is_first, monoid);
    if (b->microbatch !=
        /* all micro-batches have one program; a number in it is known when it is lowered */
        SF_NONE)
        return may_repeat(maker, monoid) ? x : mask_others(b, x, is_first, monoid);
    return is_first ? emit_op(b, SF_OP_CONSTANT, 0, NULL, maker->attrs, type)
                    : emit_identity(b, monoid, type);
}

/* The layout with the axes replicated. */
static sf_layout layout_freed(const sf_layout *layout, sf_axes axes)
{
    sf_layout out = *layout;
    for (int a = 0; a < SF_MAX_AXES; a++)
        if (axes >> a & 1)
            out.axes[a] = (sf_share){0};
    return out;
}

sf_value local_embed(local_builder *b, sf_value x, const sf_type *whole, const sf_layout *layout,
                     sf_axes axes)
{
    sf_pool *pool = b->graph->pool;
    sf_layout after = layout_freed(layout, axes);
    sf_items list = sf_items_of(whole, layout, &after, b->mesh);
    const sf_type *to = local_type(b, whole, &after), *type = sf_type_of(b->graph, x);
    int64_t dims[SF_MAX_ITEMS], low[SF_MAX_ITEMS], high[SF_MAX_ITEMS], interior[SF_MAX_ITEMS] = {0};
    for (int i = 0; i < list.count; i++) {
        const sf_item *at = &list.at[i];
        bool split = at->kind == SF_ITEM_SOURCE;
        dims[i] = split ? 1 : at->size;
        low[i] = split ? sf_mesh_coordinate(b->mesh, b->rank, at->axis) : 0;
        high[i] = split ? at->size - 1 - low[i] : 0;
    }
    sf_value zero = emit_number(b, sf_type_scalar(pool, type->dtype), 0);
    sf_value operands[2] = {emit_reshape(b, x, list.count, dims), zero};
    const sf_attr *attrs[] = {
        [SF_PAD_LOW] = sf_attr_ints(pool, list.count, low),
        [SF_PAD_HIGH] = sf_attr_ints(pool, list.count, high),
        [SF_PAD_INTERIOR] = sf_attr_ints(pool, list.count, interior),
    };
    for (int i = 0; i < list.count; i++)
        dims[i] = list.at[i].size;
    const sf_type *padded = sf_type_get(pool, type->dtype, list.count, dims);
    return reshape_to(b, emit_op(b, SF_OP_PAD, 2, operands, attrs, padded), to);
}

sf_monoid local_reshard_monoid(const local_resharding *m)
{
    int axis = 0;
    while (!(m->axes >> axis & 1))
        axis++;
    if (m->kind == SF_RESHARD_MASK)
        return m->after->axes[axis].monoid;
    return sf_move_reduces(m->kind) ? m->before->axes[axis].monoid : SF_MONOID_NONE;
}

sf_value local_reshard_alone(local_builder *b, sf_value x, const local_resharding *m)
{
    if (m->kind == SF_RESHARD_MASK)
        return mask_others(b, x, sf_group_place(b->mesh, m->axes, b->rank) == 0,
                           local_reshard_monoid(m));
    sf_items list = sf_items_of(m->whole, m->before, m->after, b->mesh);
    return slice_items(b, x, &list, local_type(b, m->whole, m->after));
}

/* From the shard to the operand of the collective: parts for the members, contiguous. */
sf_value local_reshard_before(local_builder *b, sf_value x, const local_resharding *m)
{
    sf_items list = sf_items_of(m->whole, m->before, m->after, b->mesh);
    int64_t size = sf_group_size(b->mesh, m->axes);
    if (m->kind == SF_RESHARD_GATHER)
        return reshape_to(b, x, row_of_items(b, local_rows(b, size, sf_type_of(b->graph, x))));
    if (m->kind == SF_RESHARD_SCATTER)
        return reshape_to(b, bring_to_front(b, x, &list, SF_ITEM_TARGET),
                          local_rows(b, size, local_type(b, m->whole, m->after)));
    if (m->kind != SF_RESHARD_EXCHANGE)
        return x;
    int64_t dims[2] = {size, sf_type_of(b->graph, x)->count / size};
    sf_items before = sf_items_without(&list, SF_ITEM_SOURCE);
    return emit_reshape(b, bring_to_front(b, x, &before, SF_ITEM_TARGET), 2, dims);
}

const sf_type *local_reshard_type(local_builder *b, sf_value operand, const local_resharding *m)
{
    const sf_type *type = sf_type_of(b->graph, operand);
    if (m->kind == SF_RESHARD_GATHER)
        return local_rows(b, sf_group_size(b->mesh, m->axes), type);
    return m->kind == SF_RESHARD_SCATTER ? row_of_items(b, type) : type;
}

/* From the result of the collective to the shard. */
sf_value local_reshard_after(local_builder *b, sf_value x, const local_resharding *m)
{
    sf_items list = sf_items_of(m->whole, m->before, m->after, b->mesh);
    const sf_type *to = local_type(b, m->whole, m->after);
    if (m->kind == SF_RESHARD_EXCHANGE)
        list = sf_items_without(&list, SF_ITEM_TARGET);
    if (m->kind == SF_RESHARD_EXCHANGE || m->kind == SF_RESHARD_GATHER)
        x = update_in_pieces(b, x, &list, SF_ITEM_SOURCE);
    return reshape_to(b, x, to);
}
