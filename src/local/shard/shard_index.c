/* Ops that look up positions: position i of the whole is position j of the shard, or not in it.
 *
 * A position is a number in the mixed radix of the layout (shard/layout.h). The shard holds it
 * if its split digits are the coordinates of the rank; the other digits are the position in the
 * shard. */
#include <stdint.h>

#include "local/shard/shard_builder.h"
#include "op/indexing.h"
#include "op/slots.h"
#include "op/util.h"

static bool is_split(const sf_layout *layout, int dim)
{
    for (int a = 0; a < SF_MAX_AXES; a++)
        if (layout->axes[a].kind == SF_SPLIT && layout->axes[a].dim == dim)
            return true;
    return false;
}

/* x * factor, and so on, by a number; nothing where that is neutral. */
static sf_value scale_index(local_builder *b, sf_opcode code, sf_value x, int64_t number)
{
    bool neutral = code == SF_OP_ADD ? number == 0 : number == 1 && code != SF_OP_REMAINDER;
    return neutral ? x : emit_binary(b, code, x, emit_like(b, x, number));
}

static sf_value join_values(local_builder *b, sf_opcode code, sf_value x, sf_value y)
{
    return x == SF_NONE ? y : emit_binary(b, code, x, y);
}

sf_value local_positions(local_builder *b, const sf_layout *layout, int dim, int64_t size,
                         sf_dtype dtype)
{
    sf_digit digits[SF_MAX_DIGITS];
    int count = sf_layout_digits(layout, b->mesh, dim, size, digits), rank = 0;
    int64_t dims[SF_MAX_DIGITS], length = 1, offset = 0, of_microbatch = 0;
    bool of_rank = false;
    for (int i = 0; i < count; i++) {
        if (digits[i].axis >= 0 && b->microbatch != SF_NONE) {
            of_microbatch = digits[i].unit;
        } else if (digits[i].axis >= 0) {
            offset += sf_mesh_coordinate(b->mesh, b->rank, digits[i].axis) * digits[i].unit;
            of_rank = true;
        } else {
            dims[rank++] = digits[i].size;
            length *= digits[i].size;
        }
    }
    const sf_type *type = sf_type_get(b->graph->pool, dtype, rank, dims);
    sf_value sum = SF_NONE;
    for (int i = 0, at = 0; i < count; i++) {
        if (digits[i].axis >= 0)
            continue;
        const sf_attr *attr = sf_attr_int(b->graph->pool, at++);
        sf_value digit = emit_op(b, SF_OP_IOTA, 0, NULL, &attr, type);
        sum = join_values(b, SF_OP_ADD, sum, scale_index(b, SF_OP_MULTIPLY, digit, digits[i].unit));
    }
    if (sum == SF_NONE)
        sum = emit_number(b, type, offset);
    else if (of_rank) /* on the first rank too, so that all have the same nodes */
        sum = emit_binary(b, SF_OP_ADD, sum, emit_like(b, sum, offset));
    if (of_microbatch > 0) {
        sf_value start = scale_index(b, SF_OP_MULTIPLY, local_microbatch(b, dtype), of_microbatch);
        sum = emit_binary(b, SF_OP_ADD, sum, emit_broadcast(b, start, type, NULL));
    }
    return emit_reshape(b, sum, 1, &length);
}

/* The coordinate of the rank, or the number of the micro-batch, in the type of x. */
static sf_value own_coordinate(local_builder *b, sf_value x, int axis)
{
    const sf_type *type = sf_type_of(b->graph, x);
    if (b->microbatch != SF_NONE)
        return emit_broadcast(b, local_microbatch(b, type->dtype), type, NULL);
    return emit_like(b, x, sf_mesh_coordinate(b->mesh, b->rank, axis));
}

/* For positions of the whole, all in [0, size): their positions in the shard, and whether it holds
 * them. */
static void locate_places(local_builder *b, sf_value places, const sf_layout *layout, int dim,
                          int64_t size, sf_value *local, sf_value *held)
{
    sf_digit digits[SF_MAX_DIGITS];
    int64_t minor = 1;
    *local = *held = SF_NONE;
    for (int i = sf_layout_digits(layout, b->mesh, dim, size, digits) - 1; i >= 0; i--) {
        sf_value digit = scale_index(b, SF_OP_DIVIDE, places, digits[i].unit);
        if (digits[i].unit * digits[i].size != size)
            digit = scale_index(b, SF_OP_REMAINDER, digit, digits[i].size);
        if (digits[i].axis < 0) {
            *local =
                join_values(b, SF_OP_ADD, *local, scale_index(b, SF_OP_MULTIPLY, digit, minor));
            minor *= digits[i].size;
        } else {
            *held =
                join_values(b, SF_OP_AND, *held,
                            emit_compare(b, "EQ", digit, own_coordinate(b, digit, digits[i].axis)));
        }
    }
    if (*local == SF_NONE)
        *local = emit_like(b, places, 0);
}

/* low <= x <= high, as i1. */
static sf_value is_between(local_builder *b, int64_t low, sf_value x, int64_t high)
{
    sf_value above = emit_compare(b, "GE", x, emit_like(b, x, low));
    return emit_binary(b, SF_OP_AND, above, emit_compare(b, "LE", x, emit_like(b, x, high)));
}

static sf_value clamp_index(local_builder *b, int64_t low, sf_value x, int64_t high)
{
    sf_value above = emit_binary(b, SF_OP_MAXIMUM, x, emit_like(b, x, low));
    return emit_binary(b, SF_OP_MINIMUM, above, emit_like(b, x, high));
}

/* Indices in a type that every place of the tensor fits into. */
static sf_value widen_indices(local_builder *b, sf_value indices, const sf_type *tensor)
{
    sf_dtype dtype = sf_type_of(b->graph, indices)->dtype;
    bool fits = dtype == SF_S32;
    for (int d = 0; d < tensor->rank; d++)
        fits = fits && tensor->dims[d] < INT32_MAX;
    if (fits)
        return indices;
    if (dtype == SF_U64)
        indices = emit_binary(b, SF_OP_MINIMUM, indices, emit_like(b, indices, INT64_MAX));
    return emit_convert(b, indices, SF_S64);
}

/* gather and scatter */

/* A lookup on shards. */
typedef struct lookup {
    const sf_type *operand; /* whole */
    const sf_layout *layout;
    sf_indexing indexing;
    uint32_t sought; /* components of the index vector that are places along a split dimension */
    bool clamps;     /* places outside of the whole are moved inside; else they are nowhere */
} lookup;

/* Component c of the index vectors; `vector` dimension of size 1 where there is one. */
static sf_value index_component(local_builder *b, const lookup *look, sf_value indices, int c)
{
    const sf_type *type = sf_type_of(b->graph, indices);
    int64_t starts[SF_MAX_RANK] = {0}, limits[SF_MAX_RANK];
    for (int q = 0; q < type->rank; q++)
        limits[q] = type->dims[q];
    if (look->indexing.vector_dim < type->rank) {
        starts[look->indexing.vector_dim] = c;
        limits[look->indexing.vector_dim] = c + 1;
    }
    return emit_slice(b, indices, starts, limits);
}

static sf_value concatenate_parts(local_builder *b, const lookup *look, int count,
                                  const sf_value *parts)
{
    const sf_type *type = sf_type_of(b->graph, parts[0]);
    int64_t dims[SF_MAX_RANK];
    if (count == 1)
        return parts[0];
    for (int q = 0; q < type->rank; q++)
        dims[q] = q == look->indexing.vector_dim ? count : type->dims[q];
    const sf_attr *attr = sf_attr_int(b->graph->pool, look->indexing.vector_dim);
    return emit_op(b, SF_OP_CONCATENATE, (uint32_t)count, parts, &attr,
                   sf_type_get(b->graph->pool, type->dtype, type->rank, dims));
}

static int operand_dim(const lookup *look, int c)
{
    int d = 0;
    while (look->indexing.start_of[d] != c)
        d++;
    return d;
}

/* The indices in the shard, and whether it holds them. */
static sf_value seek_rows(local_builder *b, const lookup *look, int count, sf_value indices,
                          sf_value *held)
{
    sf_value parts[SF_MAX_RANK];
    indices = widen_indices(b, indices, look->operand);
    *held = SF_NONE;
    for (int c = 0; c < count; c++) {
        sf_value here;
        parts[c] = index_component(b, look, indices, c);
        if (!(look->sought >> c & 1))
            continue;
        int d = operand_dim(look, c);
        int64_t last = look->operand->dims[d] - 1;
        sf_value inside = look->clamps ? SF_NONE : is_between(b, 0, parts[c], last);
        locate_places(b, clamp_index(b, 0, parts[c], last), look->layout, d, last + 1, &parts[c],
                      &here);
        if (inside != SF_NONE)
            here = emit_binary(b, SF_OP_AND, here, inside);
        *held = join_values(b, SF_OP_AND, *held, here);
        if (!look->clamps)
            parts[c] = emit_select(b, here, parts[c], emit_like(b, parts[c], -1));
    }
    return concatenate_parts(b, look, count, parts);
}

/* From the indices without their vector to the result of gather. */
static sf_value spread_held(local_builder *b, const lookup *look, sf_value held,
                            const sf_type *result)
{
    const sf_type *type = sf_type_of(b->graph, held);
    int64_t dims[SF_MAX_RANK];
    int to[SF_MAX_RANK], rank = 0;
    for (int q = 0; q < type->rank; q++)
        if (q != look->indexing.vector_dim) {
            dims[rank] = type->dims[q];
            to[rank++] = look->indexing.windowed_of[q];
        }
    return emit_broadcast(b, emit_reshape(b, held, rank, dims),
                          sf_type_with(b->graph->pool, result, SF_PRED), to);
}

static lookup look_at_op(const local_node *n, int indices, sf_ints windows, bool clamps)
{
    lookup look = {.operand = n->op.in[0], .layout = &n->layouts[0], .clamps = clamps};
    look.indexing = sf_indexing_get(&n->op, n->op.in[0], n->op.in[indices]);
    for (int d = 0; d < look.operand->rank; d++)
        if (is_split(look.layout, d) && look.indexing.start_of[d] >= 0 && windows.at[d] == 1)
            look.sought |= 1u << look.indexing.start_of[d];
    return look;
}

/* A shard of the operand gives its elements, and the neutral element for those of other shards. */
sf_status local_gather(local_builder *b, local_node *n)
{
    lookup look = look_at_op(n, 1, sf_op_ints(&n->op, SF_GATHER_SIZES), true);
    int count = sf_op_ints(&n->op, SF_INDEXING_MAP).count;
    sf_value held = SF_NONE;
    if (look.sought)
        n->in[1] = seek_rows(b, &look, count, n->in[1], &held);
    SF_TRY(local_same_op(b, n, n->in));
    if (held == SF_NONE)
        return SF_OK;
    sf_monoid monoid = n->types[2]->dtype == SF_PRED ? SF_MONOID_OR : SF_MONOID_ADD;
    n->out[0] = emit_select(b, spread_held(b, &look, held, n->types[2]), n->out[0],
                            emit_identity(b, monoid, n->types[2]));
    return SF_OK;
}

/* Updates that go to other shards are dropped. */
sf_status local_scatter(local_builder *b, local_node *n)
{
    int inputs = (n->op.noperands - 1) / 2;
    int count = sf_op_ints(&n->op, SF_INDEXING_MAP).count;
    sf_indexing indexing = sf_indexing_get(&n->op, n->op.in[0], n->op.in[inputs]);
    int64_t sizes[SF_MAX_RANK];
    for (int d = 0; d < n->op.in[0]->rank; d++)
        sizes[d] =
            indexing.window_of[d] >= 0 ? n->op.in[inputs + 1]->dims[indexing.window_of[d]] : 1;
    lookup look = look_at_op(n, inputs, (sf_ints){n->op.in[0]->rank, sizes}, false);
    sf_value held;
    if (look.sought)
        n->in[inputs] = seek_rows(b, &look, count, n->in[inputs], &held);
    return local_same_op(b, n, n->in);
}

/* dynamic_update_slice */

/* Element places[i] of dimension `dim` for every i. */
static sf_value take_places(local_builder *b, sf_value x, sf_value places, int dim)
{
    sf_pool *pool = b->graph->pool;
    const sf_type *type = sf_type_of(b->graph, x);
    int64_t dims[SF_MAX_RANK], sizes[SF_MAX_RANK], offsets[SF_MAX_RANK], one[] = {dim};
    int noffsets = 0;
    for (int d = 0; d < type->rank; d++) {
        dims[d] = d == dim ? sf_type_of(b->graph, places)->count : type->dims[d];
        sizes[d] = d == dim ? 1 : type->dims[d];
        if (d != dim)
            offsets[noffsets++] = d;
    }
    const sf_attr *attrs[SF_GATHER_SLOTS] = {
        [SF_INDEXING_WINDOW] = sf_attr_ints(pool, noffsets, offsets),
        [SF_INDEXING_DROPPED] = sf_attr_ints(pool, 1, one),
        [SF_INDEXING_MAP] = sf_attr_ints(pool, 1, one),
        [SF_INDEXING_VECTOR_DIM] = sf_attr_int(pool, 1),
        [SF_GATHER_SIZES] = sf_attr_ints(pool, type->rank, sizes),
    };
    sf_value operands[2] = {x, places};
    return emit_op(b, SF_OP_GATHER, 2, operands, attrs,
                   sf_type_get(pool, type->dtype, type->rank, dims));
}

/* Along one dimension that the update does not fill: the element of the update for each position of
 * the shard, and whether there is one. */
static sf_value update_along(local_builder *b, const local_node *n, int dim, sf_value update,
                             sf_value *held)
{
    int64_t size = n->op.in[0]->dims[dim], width = n->op.in[1]->dims[dim];
    sf_value start = n->in[2 + dim];
    if (sf_type_of(b->graph, start)->dtype == SF_U64)
        start = emit_binary(b, SF_OP_MINIMUM, start, emit_like(b, start, INT64_MAX));
    start = clamp_index(b, 0, emit_convert(b, start, SF_S64), size - width);
    sf_value positions = local_positions(b, &n->layouts[0], dim, size, SF_S64);
    start = emit_broadcast(b, start, sf_type_of(b->graph, positions), NULL);
    sf_value places = emit_binary(b, SF_OP_SUBTRACT, positions, start);
    sf_value inside = is_between(b, 0, places, width - 1);
    const sf_type *type = sf_type_with(b->graph->pool, n->types[0], SF_PRED);
    *held = join_values(b, SF_OP_AND, *held, emit_broadcast(b, inside, type, &dim));
    return take_places(b, update, clamp_index(b, 0, places, width - 1), dim);
}

/* If the operand is split along a dimension that the update does not fill, the update may lie in
 * several shards: then every element of the shard selects. */
sf_status local_update(local_builder *b, local_node *n)
{
    const sf_type *whole = n->op.in[0], *update = n->op.in[1];
    bool chooses = false;
    for (int d = 0; d < whole->rank; d++)
        chooses = chooses || (is_split(&n->layouts[0], d) && update->dims[d] != whole->dims[d]);
    if (!chooses)
        return local_same_op(b, n, n->in);
    sf_value chosen = n->in[1], held = SF_NONE;
    n->out[0] = n->in[0];
    if (update->count == 0)
        return SF_OK;
    for (int d = 0; d < whole->rank; d++)
        if (update->dims[d] != whole->dims[d])
            chosen = update_along(b, n, d, chosen, &held);
    n->out[0] = emit_select(b, held, chosen, n->in[0]);
    return SF_OK;
}
