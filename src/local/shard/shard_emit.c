#include "local/shard/shard_builder.h"
#include "op/body.h"
#include "op/slots.h"

void local_note_place(local_builder *b, const sf_node *node, sf_phase phase)
{
    b->scope = node ? node->scope : NULL;
    b->loc = node ? node->loc : SF_NOWHERE;
    b->phase = phase > b->least ? phase : b->least;
}

sf_value emit_op(local_builder *b, sf_opcode code, uint32_t noperands, const sf_value *operands,
                 const sf_attr *const *attrs, const sf_type *type)
{
    SF_ASSERT(type);
    sf_node_spec spec = {
        .def = sf_opdef_get(code),
        .noperands = noperands,
        .operands = operands,
        .nresults = 1,
        .types = &type,
        .attrs = attrs,
        .scope = b->scope,
        .phase = b->phase,
        .loc = b->loc,
    };
    return sf_graph_add(b->graph, b->block, &spec)->result;
}

sf_value emit_binary(local_builder *b, sf_opcode code, sf_value x, sf_value y)
{
    sf_value operands[2] = {x, y};
    return emit_op(b, code, 2, operands, NULL, sf_type_of(b->graph, x));
}

sf_value emit_compare(local_builder *b, const char *direction, sf_value x, sf_value y)
{
    sf_pool *pool = b->graph->pool;
    sf_value operands[2] = {x, y};
    const sf_attr *attrs[SF_COMPARE_TYPE + 1] = {[SF_COMPARE_DIRECTION] =
                                                     sf_attr_text(pool, sf_str_of(direction))};
    return emit_op(b, SF_OP_COMPARE, 2, operands, attrs,
                   sf_type_with(pool, sf_type_of(b->graph, x), SF_PRED));
}

sf_value emit_select(local_builder *b, sf_value predicate, sf_value x, sf_value y)
{
    sf_value operands[3] = {predicate, x, y};
    return emit_op(b, SF_OP_SELECT, 3, operands, NULL, sf_type_of(b->graph, x));
}

sf_value emit_convert(local_builder *b, sf_value x, sf_dtype dtype)
{
    const sf_type *type = sf_type_of(b->graph, x);
    if (type->dtype == dtype)
        return x;
    return emit_op(b, SF_OP_CONVERT, 1, &x, NULL, sf_type_with(b->graph->pool, type, dtype));
}

sf_value emit_reshape(local_builder *b, sf_value x, int rank, const int64_t *dims)
{
    const sf_type *from = sf_type_of(b->graph, x);
    const sf_type *to = sf_type_get(b->graph->pool, from->dtype, rank, dims);
    return from == to ? x : emit_op(b, SF_OP_RESHAPE, 1, &x, NULL, to);
}

sf_value emit_transpose(local_builder *b, sf_value x, const int *order)
{
    const sf_type *type = sf_type_of(b->graph, x);
    int64_t dims[SF_MAX_RANK], permutation[SF_MAX_RANK];
    bool in_order = true;
    for (int i = 0; i < type->rank; i++) {
        dims[i] = type->dims[order[i]];
        permutation[i] = order[i];
        in_order = in_order && order[i] == i;
    }
    if (in_order)
        return x;
    const sf_attr *attr = sf_attr_ints(b->graph->pool, type->rank, permutation);
    return emit_op(b, SF_OP_TRANSPOSE, 1, &x, &attr,
                   sf_type_get(b->graph->pool, type->dtype, type->rank, dims));
}

sf_value emit_slice(local_builder *b, sf_value x, const int64_t *starts, const int64_t *limits)
{
    sf_pool *pool = b->graph->pool;
    const sf_type *type = sf_type_of(b->graph, x);
    int64_t dims[SF_MAX_RANK], strides[SF_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        dims[i] = limits[i] - starts[i];
        strides[i] = 1;
    }
    const sf_type *to = sf_type_get(pool, type->dtype, type->rank, dims);
    const sf_attr *attrs[] = {
        [SF_SLICE_STARTS] = sf_attr_ints(pool, type->rank, starts),
        [SF_SLICE_LIMITS] = sf_attr_ints(pool, type->rank, limits),
        [SF_SLICE_STRIDES] = sf_attr_ints(pool, type->rank, strides),
    };
    return to == type ? x : emit_op(b, SF_OP_SLICE, 1, &x, attrs, to);
}

sf_value emit_broadcast(local_builder *b, sf_value x, const sf_type *type, const int *dims)
{
    const sf_type *from = sf_type_of(b->graph, x);
    int64_t list[SF_MAX_RANK];
    for (int i = 0; i < from->rank; i++)
        list[i] = dims[i];
    const sf_attr *attr = sf_attr_ints(b->graph->pool, from->rank, list);
    return from == type ? x : emit_op(b, SF_OP_BROADCAST_IN_DIM, 1, &x, &attr, type);
}

static sf_value emit_splat(local_builder *b, const sf_type *type, const void *element)
{
    const sf_attr *attr = sf_attr_dense(b->graph->pool, type, true, element);
    return emit_op(b, SF_OP_CONSTANT, 0, NULL, &attr, type);
}

sf_value emit_number(local_builder *b, const sf_type *type, int64_t number)
{
    uint64_t element[SF_ELEMENT_BYTES / sizeof(uint64_t)] = {0};
    sf_store_i64(type->dtype, element, 0, number);
    return emit_splat(b, type, element);
}

sf_value emit_like(local_builder *b, sf_value x, int64_t number)
{
    return emit_number(b, sf_type_of(b->graph, x), number);
}

sf_value emit_identity(local_builder *b, sf_monoid monoid, const sf_type *type)
{
    uint64_t element[SF_ELEMENT_BYTES / sizeof(uint64_t)] = {0};
    sf_dtype part = sf_part_of(type->dtype);
    sf_word words[2];
    sf_words_identity(monoid, type->dtype, words);
    for (int i = 0; i < sf_parts_of(type->dtype); i++)
        if (sf_is_float(part))
            sf_store_f64(part, element, i, words[i].real);
        else
            sf_store_i64(part, element, i, (int64_t)words[i].integer);
    return emit_splat(b, type, element);
}

sf_value emit_collective(local_builder *b, sf_collective kind, uint32_t count,
                         const sf_value *operands, const sf_type *const *types, sf_axes axes,
                         sf_monoid monoid, const char *what)
{
    sf_pool *pool = b->graph->pool;
    const local_between *between = b->between;
    const sf_attr *attrs[SF_COLLECTIVE_BODY + 1] = {
        [SF_COLLECTIVE_AXES] = sf_attr_int(pool, between ? 1 << between->axis : (int64_t)axes),
        [SF_COLLECTIVE_SIZE] = sf_attr_int(pool, sf_group_size(b->mesh, axes)),
        [SF_COLLECTIVE_NUMBER] = sf_attr_int(pool, b->collectives++),
        [SF_COLLECTIVE_WHAT] = sf_attr_text(pool, sf_str_of(what)),
        [SF_COLLECTIVE_GROUPS] = between ? sf_attr_int(pool, (int64_t)between->groups) : NULL,
        [SF_COLLECTIVE_BODY] = sf_attr_int(pool, monoid),
    };
    sf_node_spec spec = {.def = sf_opdef_of_collective(kind),
                         .noperands = count,
                         .operands = operands,
                         .nresults = count,
                         .types = types,
                         .attrs = attrs,
                         .scope = b->scope,
                         .phase = b->phase,
                         .loc = b->loc};
    return sf_graph_add(b->graph, b->block, &spec)->result;
}

sf_value local_microbatch(local_builder *b, sf_dtype dtype)
{
    return emit_convert(b, b->microbatch, dtype);
}

sf_value local_is_first_microbatch(local_builder *b)
{
    return emit_compare(b, "EQ", b->microbatch, emit_like(b, b->microbatch, 0));
}

const sf_type *local_type(const local_builder *b, const sf_type *whole, const sf_layout *layout)
{
    int64_t dims[SF_MAX_RANK];
    sf_layout_dims(layout, b->mesh, whole->rank, whole->dims, dims);
    return sf_type_get(b->graph->pool, whole->dtype, whole->rank, dims);
}
