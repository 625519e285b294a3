/* Forms of nodes that fuse better. A text takes one element per row of a large tensor by an index
 * (the logit of a label), or adds to one (its gradient), in an op of its own, with the whole tensor
 * in memory before or after it. And it converts a tensor that is the same for all rows, the scale
 * of a norm, before it is broadcast, which would be a loop of its own that the one over rows waits
 * for.
 *
 *     gather(convert(x), i)                      convert(gather(x, i))
 *     scatter(splat, i, u), with one u a row     select(counter == i, splat + u, splat)
 *     broadcast(convert(convert(x)))             convert(convert(broadcast(x)))
 *
 * And products whose factors differ in type become those of one type, for which targets have kernels: the type that the
 * text's algorithm asks for, on targets that round so, else the wider one.
 *
 *     dot(x, y)                                  convert(dot(convert(x), convert(y)))
 *
 * A product of which each element is a number by itself, with nothing left of either factor but batches, or a product of two
 * numbers, is no matrix: where passes count, it is arithmetic like any other.
 *
 *     dot(x, y), of batches alone                sum(x * y)
 *     dot(x, y), with nothing to sum             broadcast(x) * broadcast(y) */
#include "ir/clone.h"
#include "op/carry.h"
#include "op/indexing.h"
#include "op/node_builder.h"
#include "op/slots.h"
#include "op/util.h"
#include "prog/lower/lowering.h"

typedef struct forming {
    const sf_graph *graph;
    const sf_target *target;
    sf_regraph *out;
} forming;

enum { MOST_MADE = 12, MOST_CONVERTS = 4 }; /* nodes in the place of one; converts that are moved */

/* The convert that can be moved after the gather: from a narrower type, and the gather takes a part
 * of it. */
static const sf_node *convert_before(const sf_graph *graph, const sf_node *node)
{
    if (!sf_is(node, SF_OP_GATHER))
        return NULL;
    const sf_node *maker = sf_maker(graph, node->operands[0]);
    if (!maker || !sf_is(maker, SF_OP_CONVERT))
        return NULL;
    const sf_type *wide = sf_type_of(graph, maker->result);
    const sf_type *from = sf_type_of(graph, maker->operands[0]);
    bool is_part = sf_type_of(graph, node->result)->count < wide->count;
    return is_part && sf_dtype_get(from->dtype)->bits < sf_dtype_get(wide->dtype)->bits ? maker
                                                                                        : NULL;
}

/* The one dimension of the operand that is indexed, all others being rows, in order; -1: it is otherwise. */
static int picked_dim(const sf_graph *graph, const sf_node *node)
{
    const sf_type *operand = sf_type_of(graph, node->operands[0]);
    const sf_type *indices = sf_type_of(graph, node->operands[1]);
    const sf_type *types[4];
    sf_op op = sf_op_of(graph, node, types);
    sf_indexing indexing = sf_indexing_get(&op, operand, indices);
    int picked = -1, last = -1;
    int64_t rows = 1;
    for (int d = 0; d < operand->rank; d++) {
        int batch = indexing.batch_of[d];
        if (batch < 0 && (picked >= 0 || indexing.start_of[d] < 0 || indexing.window_of[d] >= 0))
            return -1;
        if (batch < 0) {
            picked = d;
            continue;
        }
        if (batch <= last)
            return -1;
        last = batch;
        rows *= operand->dims[d];
    }
    return indices->count == rows ? picked : -1;
}

/* Whether it puts one element into each row of a tensor that is otherwise one number. */
static bool is_picking_scatter(const sf_graph *graph, const sf_node *node)
{
    if (!sf_is(node, SF_OP_SCATTER) || node->nresults != 1 || node->nregions > 0)
        return false;
    const sf_node *into = sf_maker(graph, node->operands[0]);
    sf_dtype dtype = sf_type_of(graph, node->result)->dtype;
    sf_dtype index = sf_type_of(graph, node->operands[1])->dtype;
    int64_t monoid = node->attrs[SF_SCATTER_BODY]->integer;
    return into && sf_is(into, SF_OP_CONSTANT) && into->attrs[SF_CONSTANT_VALUE]->dense.splat &&
           (monoid == SF_MONOID_ADD || monoid == SF_MONOID_SECOND) && sf_is_float(dtype) &&
           sf_dtype_get(dtype)->bits >= 16 && sf_dtype_get(index)->bits >= 32 &&
           picked_dim(graph, node) >= 0;
}

static void add_gather(forming *f, const sf_node *node, const sf_node *convert)
{
    const sf_type *type = sf_type_of(f->graph, node->result);
    sf_dtype from = sf_type_of(f->graph, convert->operands[0])->dtype;
    const sf_value operands[2] = {f->out->values[convert->operands[0]],
                                  f->out->values[node->operands[1]]};
    sf_value narrow =
        sf_regraph_add(f->out, node, SF_OP_GATHER, 2, operands, node->attrs,
                       sf_type_get(f->out->graph->pool, from, type->rank, type->dims));
    f->out->values[node->result] =
        sf_regraph_add(f->out, node, SF_OP_CONVERT, 1, &narrow, convert->attrs, type);
}

/* One number a row, everywhere in it. */
static sf_value spread_rows(forming *f, const sf_node *node, sf_value value, int picked,
                            const sf_type *shape)
{
    sf_pool *pool = f->out->graph->pool;
    int64_t rows[SF_MAX_RANK], dims[SF_MAX_RANK];
    int rank = 0;
    sf_dtype dtype = sf_type_of(f->graph, value)->dtype;
    for (int d = 0; d < shape->rank; d++)
        if (d != picked) {
            dims[rank] = d;
            rows[rank++] = shape->dims[d];
        }
    sf_value row = sf_regraph_add(f->out, node, SF_OP_RESHAPE, 1, &f->out->values[value], NULL,
                                  sf_type_get(pool, dtype, rank, rows));
    const sf_attr *along = sf_attr_ints(pool, rank, dims);
    return sf_regraph_add(f->out, node, SF_OP_BROADCAST_IN_DIM, 1, &row, &along,
                          sf_type_get(pool, dtype, shape->rank, shape->dims));
}

static void add_scatter(forming *f, const sf_node *node)
{
    sf_pool *pool = f->out->graph->pool;
    const sf_type *type = sf_type_of(f->graph, node->result);
    sf_dtype dtype = sf_type_of(f->graph, node->operands[1])->dtype;
    int picked = picked_dim(f->graph, node);
    sf_value splat = f->out->values[node->operands[0]];
    sf_value at = spread_rows(f, node, node->operands[1], picked, type);
    sf_value update = spread_rows(f, node, node->operands[2], picked, type);
    const sf_attr *along = sf_attr_int(pool, picked);
    sf_value counter = sf_regraph_add(f->out, node, SF_OP_IOTA, 0, NULL, &along,
                                      sf_type_get(pool, dtype, type->rank, type->dims));
    const sf_attr *equal[2] = {[SF_COMPARE_DIRECTION] = sf_attr_text(pool, sf_str_of("EQ"))};
    sf_value is_there = sf_regraph_add(f->out, node, SF_OP_COMPARE, 2, (sf_value[]){counter, at},
                                       equal, sf_type_get(pool, SF_PRED, type->rank, type->dims));
    if (node->attrs[SF_SCATTER_BODY]->integer == SF_MONOID_ADD)
        update =
            sf_regraph_add(f->out, node, SF_OP_ADD, 2, (sf_value[]){splat, update}, NULL, type);
    f->out->values[node->result] = sf_regraph_add(
        f->out, node, SF_OP_SELECT, 3, (sf_value[]){is_there, update, splat}, NULL, type);
}

/* Converts, and reshapes among them, between a broadcast and the argument that they begin with, if
 * the broadcast takes no more bytes than their result. */
typedef struct sunk {
    const sf_node *converts[MOST_CONVERTS]; /* the last one first */
    int nconverts;
    sf_value base;
    const sf_type *shape; /* before the broadcast */
} sunk;

static bool find_sunk(const sf_graph *graph, const sf_node *node, sunk *out)
{
    if (!sf_is(node, SF_OP_BROADCAST_IN_DIM))
        return false;
    *out = (sunk){.base = node->operands[0], .shape = sf_type_of(graph, node->operands[0])};
    const sf_node *maker;
    while ((maker = sf_maker(graph, out->base)) && out->nconverts < MOST_CONVERTS &&
           sf_carries(maker, SF_CARRIES_TYPE | SF_CARRIES_SHAPE)) {
        if (sf_is(maker, SF_OP_CONVERT))
            out->converts[out->nconverts++] = maker;
        out->base = maker->operands[0];
    }
    const sf_type *base = sf_type_of(graph, out->base);
    return out->nconverts > 0 && !maker && base->count > 1 &&
           sf_type_of(graph, node->result)->count > base->count &&
           sf_dtype_get(base->dtype)->bits <= sf_dtype_get(out->shape->dtype)->bits;
}

static void add_sunk(forming *f, const sf_node *node, const sunk *s)
{
    sf_pool *pool = f->out->graph->pool;
    const sf_type *type = sf_type_of(f->graph, node->result);
    sf_dtype dtype = sf_type_of(f->graph, s->base)->dtype;
    sf_value value = sf_regraph_add(f->out, node, SF_OP_RESHAPE, 1, &f->out->values[s->base], NULL,
                                    sf_type_get(pool, dtype, s->shape->rank, s->shape->dims));
    value = sf_regraph_add(f->out, node, SF_OP_BROADCAST_IN_DIM, 1, &value, node->attrs,
                           sf_type_get(pool, dtype, type->rank, type->dims));
    for (int i = s->nconverts; i-- > 0;) {
        const sf_type *to = sf_type_of(f->graph, s->converts[i]->result);
        value = sf_regraph_add(f->out, node, SF_OP_CONVERT, 1, &value, s->converts[i]->attrs,
                               sf_type_get(pool, to->dtype, type->rank, type->dims));
    }
    f->out->values[node->result] = value;
}

/* Types of factors and result that the target multiplies, in place of the node's own. */
typedef struct factors {
    sf_dtype in[2], out;
} factors;

static bool multiplies(const sf_target *target, const factors *f)
{
    return target->multiplies(f->in[0], f->in[1], f->out);
}

static sf_dtype wider_float(sf_dtype a, sf_dtype b)
{
    return a == SF_F64 || b == SF_F64 ? SF_F64 : SF_F32;
}

/* Whether the product is one that the target does better in other types. */
static bool find_factors(const forming *f, const sf_node *node, factors *out)
{
    if (!sf_is(node, SF_OP_DOT_GENERAL) || !f->target->multiplies)
        return false;
    factors own = {.out = sf_type_of(f->graph, node->result)->dtype};
    for (int i = 0; i < 2; i++) {
        own.in[i] = sf_type_of(f->graph, node->operands[i])->dtype;
        if (!sf_is_float(own.in[i]))
            return false;
        out->in[i] = f->target->rounds_as_asked ? sf_asked_dtype(node, i, own.in[i]) : own.in[i];
    }
    out->out = own.out;
    bool is_asked = out->in[0] != own.in[0] || out->in[1] != own.in[1];
    if (is_asked && multiplies(f->target, out))
        return true;
    if (multiplies(f->target, &own) || !sf_is_float(own.out))
        return false;
    out->in[0] = out->in[1] = out->out = wider_float(own.in[0], own.in[1]);
    return sf_dtype_get(out->out)->bits >= sf_dtype_get(own.out)->bits &&
           multiplies(f->target, out);
}

static sf_value add_convert(forming *f, const sf_node *node, sf_value value, sf_dtype to)
{
    const sf_type *type = sf_type_of(f->out->graph, value);
    return type->dtype == to
               ? value
               : sf_regraph_add(f->out, node, SF_OP_CONVERT, 1, &value, NULL,
                                sf_type_get(f->out->graph->pool, to, type->rank, type->dims));
}

static void add_product(forming *f, const sf_node *node, const factors *to)
{
    const sf_type *type = sf_type_of(f->graph, node->result);
    sf_value in[2];
    for (int i = 0; i < 2; i++)
        in[i] = add_convert(f, node, f->out->values[node->operands[i]], to->in[i]);
    sf_value product =
        sf_regraph_add(f->out, node, SF_OP_DOT_GENERAL, 2, in, node->attrs,
                       sf_type_get(f->out->graph->pool, to->out, type->rank, type->dims));
    f->out->values[node->result] = add_convert(f, node, product, type->dtype);
}

/* Dimensions of factors in the order batch, free, sum. */
typedef struct factor_order {
    int64_t at[SF_MAX_RANK];
    int nbatch, nfree, nsum;
    int64_t free, sum; /* elements */
} factor_order;

static factor_order order_of(const sf_graph *graph, const sf_node *node, int operand)
{
    const sf_type *type = sf_type_of(graph, node->operands[operand]);
    const sf_attr *batch = node->attrs[SF_DOT_LHS_BATCH + operand],
                  *sum = node->attrs[SF_DOT_LHS_CONTRACTING + operand];
    factor_order o = {.free = 1, .sum = 1};
    uint64_t taken = 0;
    o.nbatch = batch ? batch->count : 0;
    o.nsum = sum ? sum->count : 0;
    for (int i = 0; i < o.nbatch; i++)
        taken |= UINT64_C(1) << (o.at[i] = batch->ints[i]);
    for (int i = 0; i < o.nsum; i++)
        taken |= UINT64_C(1) << (o.at[type->rank - o.nsum + i] = sum->ints[i]);
    for (int d = 0; d < type->rank; d++) {
        if (taken >> d & 1)
            continue;
        o.at[o.nbatch + o.nfree++] = d;
        o.free *= type->dims[d];
    }
    for (int i = 0; i < o.nsum; i++)
        o.sum *= type->dims[sum->ints[i]];
    return o;
}

/* Whether the product is no matrix, but of more than one element; `o` is by factor. */
static bool is_arithmetic(const forming *f, const sf_node *node, factor_order o[2])
{
    if (!f->target->few_passes || !sf_is(node, SF_OP_DOT_GENERAL))
        return false;
    const sf_type *type = sf_type_of(f->graph, node->result);
    bool floats = sf_is_float(type->dtype);
    for (int i = 0; i < 2; i++) {
        o[i] = order_of(f->graph, node, i);
        floats = floats && sf_is_float(sf_type_of(f->graph, node->operands[i])->dtype);
    }
    bool sums = o[0].free == 1 && o[1].free == 1 && o[0].sum > 0;
    return floats && type->count > 1 && (sums || o[0].sum == 1) &&
           type->rank + o[0].nsum <= SF_MAX_RANK;
}

/* The factor with the dimensions of the result, and those that are summed after them. */
static sf_value spread_factor(forming *f, const sf_node *node, int operand, const factor_order *o,
                              int nfree_before, const sf_type *to)
{
    sf_pool *pool = f->out->graph->pool;
    const sf_type *type = sf_type_of(f->graph, node->operands[operand]);
    int64_t along[SF_MAX_RANK], dims[SF_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        dims[i] = type->dims[o->at[i]];
        along[i] = i < o->nbatch              ? i
                   : i < o->nbatch + o->nfree ? i + nfree_before
                                              : to->rank - type->rank + i;
    }
    const sf_attr *order = sf_attr_ints(pool, type->rank, o->at),
                  *places = sf_attr_ints(pool, type->rank, along);
    sf_value value =
        sf_regraph_add(f->out, node, SF_OP_TRANSPOSE, 1, &f->out->values[node->operands[operand]],
                       &order, sf_type_get(pool, type->dtype, type->rank, dims));
    value = add_convert(f, node, value, to->dtype);
    return sf_regraph_add(f->out, node, SF_OP_BROADCAST_IN_DIM, 1, &value, &places, to);
}

static void add_arithmetic(forming *f, const sf_node *node, const factor_order o[2])
{
    sf_pool *pool = f->out->graph->pool;
    const sf_type *type = sf_type_of(f->graph, node->result),
                  *first = sf_type_of(f->graph, node->operands[0]);
    int64_t dims[SF_MAX_RANK], summed[SF_MAX_RANK];
    for (int d = 0; d < type->rank; d++)
        dims[d] = type->dims[d];
    for (int i = 0; i < o[0].nsum; i++) {
        summed[i] = type->rank + i;
        dims[summed[i]] = first->dims[o[0].at[first->rank - o[0].nsum + i]];
    }
    sf_dtype dtype = type->dtype;
    for (int i = 0; i < 2; i++)
        dtype = wider_float(dtype, sf_type_of(f->graph, node->operands[i])->dtype);
    const sf_type *wide = sf_type_get(pool, dtype, type->rank + o[0].nsum, dims),
                  *sum = sf_type_get(pool, dtype, type->rank, type->dims);
    const sf_value spread[2] = {spread_factor(f, node, 0, &o[0], 0, wide),
                                spread_factor(f, node, 1, &o[1], o[0].nfree, wide)};
    sf_value value = sf_regraph_add(f->out, node, SF_OP_MULTIPLY, 2, spread, NULL, wide);
    if (o[0].nsum > 0) {
        const sf_type *scalar = sf_type_scalar(pool, dtype);
        const double zero = 0; /* its bytes are those of zero in any type */
        const sf_attr *none = sf_attr_dense(pool, scalar, true, &zero),
                      *attrs[2] = {[SF_REDUCE_DIMENSIONS] = sf_attr_ints(pool, o[0].nsum, summed),
                                   [SF_REDUCE_BODY] = sf_attr_int(pool, SF_MONOID_ADD)};
        const sf_value in[2] = {
            value, sf_regraph_add(f->out, node, SF_OP_CONSTANT, 0, NULL, &none, scalar)};
        value = sf_regraph_add(f->out, node, SF_OP_REDUCE, 2, in, attrs, sum);
    }
    f->out->values[node->result] = add_convert(f, node, value, type->dtype);
}

/* Adds another form of the node, where it has one. */
static bool add_form(void *context, const sf_node *node, sf_block *to)
{
    forming *f = context;
    const sf_node *convert = convert_before(f->graph, node);
    sunk s;
    factors product;
    factor_order orders[2];
    (void)to;
    if (convert)
        add_gather(f, node, convert);
    else if (is_picking_scatter(f->graph, node))
        add_scatter(f, node);
    else if (find_sunk(f->graph, node, &s))
        add_sunk(f, node, &s);
    else if (is_arithmetic(f, node, orders))
        add_arithmetic(f, node, orders);
    else if (find_factors(f, node, &product))
        add_product(f, node, &product);
    else
        return false;
    return true;
}

static size_t count_forms(const forming *f, const sf_block *block)
{
    const sf_graph *graph = f->graph;
    size_t count = 0;
    sunk s;
    factors product;
    factor_order orders[2];
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        count += convert_before(graph, node) != NULL || is_picking_scatter(graph, node) ||
                 find_sunk(graph, node, &s) || is_arithmetic(f, node, orders) ||
                 find_factors(f, node, &product);
        for (uint32_t r = 0; node->def->control != SF_CONTROL_NONE && r < node->nregions; r++)
            count += count_forms(f, node->regions[r]);
    }
    return count;
}

sf_regraph find_forms(const sf_graph *graph, const sf_target *target)
{
    sf_regraph out = {0};
    forming f = {.graph = graph, .target = target, .out = &out};
    size_t count = count_forms(&f, graph->top);
    if (count == 0)
        return out;
    sf_regraph_begin(graph, MOST_MADE * count, &out);
    sf_regraph_copy(graph, add_form, &f, &out);
    sf_regraph_end(graph, &out);
    return out;
}
