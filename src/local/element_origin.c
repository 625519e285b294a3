#include "local/element_origin.h"

#include "base/hash.h"
#include "op/op.h"
#include "op/slots.h"

/* An element of a value on a rank: its index, row-major. */
typedef struct element {
    sf_value value;
    int rank;
    int64_t at;
} element;

static void unravel(const sf_type *type, int64_t at, int64_t *index)
{
    for (int d = type->rank - 1; d >= 0; d--) {
        index[d] = at % type->dims[d];
        at /= type->dims[d];
    }
}

static int64_t ravel(const sf_type *type, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < type->rank; d++)
        at = at * type->dims[d] + index[d];
    return at;
}

/* The element of the operand that an element of a transpose or a slice is. */
static int64_t behind_view(const sf_graph *graph, const sf_node *node, int64_t at)
{
    const sf_type *from = sf_type_of(graph, node->operands[0]);
    int64_t index[SF_MAX_RANK], before[SF_MAX_RANK];
    unravel(sf_type_of(graph, node->result), at, index);
    for (int d = 0; d < from->rank; d++)
        if (sf_is(node, SF_OP_TRANSPOSE))
            before[node->attrs[SF_TRANSPOSE_PERMUTATION]->ints[d]] = index[d];
        else
            before[d] = node->attrs[SF_SLICE_STARTS]->ints[d] +
                        index[d] * node->attrs[SF_SLICE_STRIDES]->ints[d];
    return ravel(from, before);
}

/* The place whose coordinates in a square group are exchanged. */
static int swapped_place(int place, int size)
{
    int side = 1;
    while (side * side < size)
        side++;
    return place % side * side + place / side;
}

/* One step back through a collective: to the operand of a rank of its group. In a reduction every
 * rank has the same element; this rank's own represents all. */
static element behind_collective(const sf_local *local, const sf_node *node, element e)
{
    const sf_mesh *mesh = &local->plan->mesh;
    sf_axes axes = (sf_axes)node->attrs[SF_COLLECTIVE_AXES]->integer;
    uint32_t part = e.value - node->result;
    int place = sf_group_place(mesh, axes, e.rank), size = sf_group_size(mesh, axes);
    int64_t count = sf_type_of(local->graph, e.value)->count;
    element out = {node->operands[part], e.rank, e.at};
    const sf_collective_info *info = sf_collective_get(sf_op_collective(node->def));
    int64_t block = info->out_blocks ? count / size : count;
    if (info->out_blocks) {
        out.rank = sf_group_member(mesh, axes, e.rank, (int)(e.at / block));
        out.at = e.at % block;
    } else if (info->route == SF_ROUTE_PEER) {
        out.rank = sf_group_member(mesh, axes, e.rank, swapped_place(place, size));
    }
    if (info->in_blocks)
        out.at += place * block;
    return out;
}

static bool trace_element(const sf_local *local, element e, sf_value source, element *out)
{
    while (e.value != source) {
        const sf_node *node = sf_maker(local->graph, e.value);
        if (!node)
            return false;
        if (sf_is_collective(node))
            e = behind_collective(local, node, e);
        else if (sf_is(node, SF_OP_RESHAPE))
            e.value = node->operands[0];
        else if (sf_is(node, SF_OP_SELECT)) /* a mask: the value, or the identity elsewhere */
            e.value = node->operands[1];
        else if (sf_is(node, SF_OP_TRANSPOSE) || sf_is(node, SF_OP_SLICE))
            e = (element){node->operands[0], e.rank, behind_view(local->graph, node, e.at)};
        else
            return false;
    }
    *out = e;
    return true;
}

/* The index in the whole tensor of an element of a shard. */
static void index_in_type(const sf_local *local, element e, int64_t *index)
{
    const sf_local_shard *shard = &local->pieces[e.value];
    const sf_type *whole = sf_type_of(local->whole, shard->whole);
    unravel(sf_type_of(local->graph, e.value), e.at, index);
    for (int d = 0; d < whole->rank; d++)
        index[d] = sf_layout_global(&shard->layout, &local->plan->mesh, e.rank, d, whole->dims[d],
                                    index[d]);
}

static bool check_element(const sf_local *local, sf_value value, sf_value source, int64_t at)
{
    element here = {value, local->rank, at}, there;
    int64_t wanted[SF_MAX_RANK], found[SF_MAX_RANK];
    if (!trace_element(local, here, source, &there))
        return false;
    index_in_type(local, here, wanted);
    index_in_type(local, there, found);
    for (int d = 0; d < sf_type_of(local->graph, value)->rank; d++)
        if (wanted[d] != found[d])
            return false;
    return true;
}

bool sf_check_elements(const sf_local *local, sf_value value, sf_value source)
{
    enum { DRAWN = 8 };
    const sf_type *type = sf_type_of(local->graph, value);
    if (type->count == 0)
        return true;
    bool good = check_element(local, value, source, 0) &&
                check_element(local, value, source, type->count - 1);
    int64_t stride = type->count;
    for (int d = 0; good && d < type->rank; d++) { /* the second index of each dimension */
        stride /= type->dims[d];
        good = type->dims[d] == 1 || check_element(local, value, source, stride);
    }
    uint64_t drawn = sf_hash_mix(value, source);
    for (int i = 0; good && i < DRAWN; i++) {
        drawn = sf_hash_mix(drawn, (uint64_t)i);
        good = check_element(local, value, source, (int64_t)(drawn % (uint64_t)type->count));
    }
    return good;
}
