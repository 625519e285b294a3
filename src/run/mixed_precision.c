#include "run/mixed_precision.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "ir/opdef.h"
#include "op/carry.h"
#include "op/op.h"
#include "op/slots.h"

/* A step while it is copied. */
typedef struct narrowing {
    const sf_graph *from;
    sf_graph *to;
    sf_precision precision;
    bool has_fp8;  /* products of it; else its numbers are multiplied as bf16 */
    sf_value *map; /* from values of the one to those of the other */
    sf_arena scratch;
    const sf_node *node; /* the current one: new nodes get its place */
    sf_block *block;
} narrowing;

/* As part of the node at hand */

static sf_value add(const narrowing *n, sf_opcode code, const sf_type *type,
                    const sf_attr *const *attrs, uint32_t noperands, const sf_value *operands)
{
    sf_node_spec spec = sf_spec_like(n->node);
    spec.def = sf_opdef_get(code);
    spec.noperands = noperands;
    spec.nresults = 1;
    spec.nregions = 0;
    spec.operands = operands;
    spec.types = &type;
    spec.attrs = attrs;
    spec.recomputed = n->node->recomputed;
    return sf_graph_add(n->to, n->block, &spec)->result;
}

/* Like the node, with other operands and another type. */
static sf_value add_like(const narrowing *n, const sf_type *type, const sf_value *operands)
{
    return add(n, (sf_opcode)n->node->def->id, type, n->node->attrs, 2, operands);
}

static sf_value converted(const narrowing *n, sf_value value, sf_dtype dtype)
{
    const sf_type *type = sf_type_of(n->to, value);
    if (type->dtype == dtype)
        return value;
    type = sf_type_with(n->to->pool, type, dtype);
    return add(n, SF_OP_CONVERT, type, NULL, 1, &value);
}

/* The same number in all elements of such a tensor. */
static sf_value filled(const narrowing *n, const sf_type *type, double value)
{
    float element = (float)value;
    const sf_attr *attr = sf_attr_dense(n->to->pool, type, true, &element);
    return add(n, SF_OP_CONSTANT, type, &attr, 0, NULL);
}

static sf_value number(const narrowing *n, double value)
{
    return filled(n, sf_type_get(n->to->pool, SF_F32, 0, NULL), value);
}

static sf_value of_two(const narrowing *n, sf_opcode code, sf_value x, sf_value y)
{
    return add(n, code, sf_type_of(n->to, x), NULL, 2, (sf_value[]){x, y});
}

/* All elements times one number. */
static sf_value times(const narrowing *n, sf_value tensor, sf_value scale)
{
    const sf_attr *attr = sf_attr_ints(n->to->pool, 0, NULL);
    const sf_type *type = sf_type_of(n->to, tensor);
    if (type->rank > 0)
        scale = add(n, SF_OP_BROADCAST_IN_DIM, type, &attr, 1, &scale);
    return of_two(n, SF_OP_MULTIPLY, tensor, scale);
}

/* The maximum along dimensions from `first` on, of numbers of which none is negative. */
static sf_value most_along(const narrowing *n, sf_value tensor, int first)
{
    sf_pool *pool = n->to->pool;
    const sf_type *type = sf_type_of(n->to, tensor);
    int64_t dims[SF_MAX_RANK];
    for (int d = first; d < type->rank; d++)
        dims[d - first] = d;
    const sf_attr *attrs[SF_REDUCE_BODY + 1] = {
        [SF_REDUCE_DIMENSIONS] = sf_attr_ints(pool, type->rank - first, dims),
        [SF_REDUCE_BODY] = sf_attr_int(pool, SF_MONOID_MAX)};
    return add(n, SF_OP_REDUCE, sf_type_get(pool, SF_F32, first, type->dims), attrs, 2,
               (sf_value[]){tensor, number(n, 0)});
}

/* Scaled types */

/* The power of two next to the largest finite magnitude of a tensor, if `top` of it is a float.
 * Infinities and NaN stay so, and have no effect on others. Rows first: these maxima are folds of
 * the loop that makes the tensor. */
static sf_value power_of(const narrowing *n, sf_value tensor, int top)
{
    const sf_type *type = sf_type_of(n->to, tensor);
    sf_value size = add(n, SF_OP_ABS, type, NULL, 1, &tensor);
    const sf_value chosen[] = {
        add(n, SF_OP_IS_FINITE, sf_type_with(n->to->pool, type, SF_PRED), NULL, 1, &tensor), size,
        filled(n, type, 0)};
    sf_value most = add(n, SF_OP_SELECT, type, NULL, 3, chosen);
    if (type->rank > 1)
        most = most_along(n, most, type->rank - 1);
    if (type->rank > 0)
        most = most_along(n, most, 0);
    const sf_value clamped[] = {number(n, ldexp(1, top - 126)), most, number(n, ldexp(1, 127))};
    most = add(n, SF_OP_CLAMP, sf_type_of(n->to, most), NULL, 3, clamped);
    return converted(n, converted(n, most, SF_F8E8M0FNU), SF_F32);
}

/* The largest power of two that a type has with half of it added: what is next to it is no larger, but for the very largest floats,
 * from 2.6e38 on, which have no power of two next to them: they become infinities. */
static int largest_power(sf_dtype dtype)
{
    int power = 0;
    while (isfinite(sf_round(dtype, ldexp(1.5, power + 1))))
        power++;
    return power;
}

/* Values that the backward pass computes, without rearranged and recomputed ones. */
static bool is_gradient(const narrowing *n, sf_value value)
{
    const sf_node *maker = sf_maker(n->from, value);
    while (sf_carries(maker, SF_CARRIES_TYPE | SF_CARRIES_SHAPE | SF_CARRIES_ORDER))
        maker = sf_maker(n->from, maker->operands[0]);
    return maker && maker->phase == SF_BACKWARD && !maker->recomputed;
}

/* In fp8, gradients have a wider range and a bit less: one factor of a product at most. */
static void choose_types(const narrowing *n, sf_dtype types[2])
{
    types[0] = types[1] = SF_F16;
    if (n->precision != SF_PRECISION_FP8)
        return;
    types[0] = is_gradient(n, n->node->operands[0]) ? SF_F8E5M2 : SF_F8E4M3FN;
    types[1] =
        types[0] == SF_F8E4M3FN && is_gradient(n, n->node->operands[1]) ? SF_F8E5M2 : SF_F8E4M3FN;
}

/* The numbers of a tensor times the power of two that uses all of a type's range, as that type; and
 * the factor that removes that power from products. */
static sf_value scaled(const narrowing *n, sf_value tensor, sf_dtype dtype, sf_value *back)
{
    int top = largest_power(dtype);
    sf_value x = converted(n, tensor, SF_F32), power = power_of(n, x, top);
    double largest = ldexp(1, top);
    x = times(n, x, of_two(n, SF_OP_DIVIDE, number(n, largest), power));
    *back = of_two(n, SF_OP_DIVIDE, power, number(n, largest));
    x = converted(n, x, dtype);
    return sf_dtype_get(dtype)->bits < 16 && !n->has_fp8 ? converted(n, x, SF_BF16) : x;
}

/* Multiplies by both. A large and a small one are first multiplied with each other, so that no
 * intermediate overflows unless the product does. */
static sf_value scaled_back(const narrowing *n, sf_value product, const sf_value back[2])
{
    sf_value one = number(n, 1);
    for (int i = 0; i < 2; i++)
        product = times(n, product,
                        of_two(n, SF_OP_MULTIPLY, of_two(n, SF_OP_MAXIMUM, back[i], one),
                               of_two(n, SF_OP_MINIMUM, back[1 - i], one)));
    return product;
}

/* A product of f16 may be out of range before it is scaled back. */
static void narrow_scaled(const narrowing *n)
{
    sf_dtype types[2];
    sf_value operands[2], back[2];
    const sf_type *type = sf_type_of(n->from, n->node->result), *before = type;
    choose_types(n, types);
    for (int i = 0; i < 2; i++)
        operands[i] = scaled(n, n->map[n->node->operands[i]], types[i], &back[i]);
    if (type->dtype == SF_F16)
        before = sf_type_with(n->to->pool, type, SF_F32);
    sf_value result = converted(n, add_like(n, before, operands), SF_F32);
    result = scaled_back(n, result, back);
    n->map[n->node->result] = converted(n, result, type->dtype);
}

/* Whether all sizes of a product of two matrices suit tensor cores for fp8. */
static bool has_even_sizes(const narrowing *n, const sf_node *node)
{
    for (int i = 0; i < 2; i++) {
        const sf_type *type = sf_type_of(n->from, node->operands[i]);
        const sf_attr *sum = node->attrs[SF_DOT_LHS_CONTRACTING + i];
        int64_t depth = 1;
        for (int j = 0; sum && j < sum->count; j++)
            depth *= type->dims[sum->ints[j]];
        if (depth == 0 || depth % 16 != 0 || type->count / depth % 16 != 0)
            return false;
    }
    return true;
}

/* Layers, that is: products that have batches are those of attention, whose kernels know of no scales. */
static bool is_scaled(const narrowing *n, const sf_node *node)
{
    const sf_attr *batch = sf_is(node, SF_OP_DOT_GENERAL) ? node->attrs[SF_DOT_LHS_BATCH] : NULL;
    return n->precision != SF_PRECISION_BF16 && sf_is(node, SF_OP_DOT_GENERAL) &&
           (!batch || batch->count == 0) &&
           (n->precision == SF_PRECISION_F16 || has_even_sizes(n, node));
}

/* Of f32; for fp8, of 16 bits as well. */
static bool is_narrowed(const narrowing *n, const sf_node *node)
{
    if (!sf_is_product(node->def))
        return false;
    const sf_attr *precision = node->attrs[node->def->precision - 1];
    bool is_exact = precision && precision->text && strstr(precision->text, "HIGH");
    sf_dtype a = sf_type_of(n->from, node->operands[0])->dtype,
             b = sf_type_of(n->from, node->operands[1])->dtype,
             c = sf_type_of(n->from, node->result)->dtype;
    bool is_half = (a == SF_BF16 || a == SF_F16) && (c == a || c == SF_F32);
    return !is_exact && a == b &&
           ((a == SF_F32 && c == SF_F32) ||
            (n->precision == SF_PRECISION_FP8 && is_half && is_scaled(n, node)));
}

/* To bf16, which has the range of f32. No library sums a convolution of bf16 into f32: its result is rounded, too. */
static void narrow_plain(const narrowing *n)
{
    sf_value operands[2];
    const sf_type *type = sf_type_of(n->from, n->node->result);
    bool is_dot = sf_is(n->node, SF_OP_DOT_GENERAL);
    for (int i = 0; i < 2; i++)
        operands[i] = converted(n, n->map[n->node->operands[i]], SF_BF16);
    if (!is_dot)
        type = sf_type_with(n->to->pool, type, SF_BF16);
    sf_value result = add_like(n, type, operands);
    n->map[n->node->result] = is_dot ? result : converted(n, result, SF_F32);
}

static void narrow_product(narrowing *n, const sf_node *node, sf_block *block)
{
    n->node = node;
    n->block = block;
    if (is_scaled(n, node))
        narrow_scaled(n);
    else
        narrow_plain(n);
}

static void narrow_block(narrowing *n, const sf_block *block, sf_block *copy);

/* A loop or a branch, whose products are in its regions. */
static void narrow_regions(narrowing *n, const sf_node *node, sf_block *block)
{
    sf_block **regions = SF_ARRAY(&n->scratch, node->nregions, sf_block *);
    const sf_type **types = SF_ARRAY(&n->scratch, node->nresults, const sf_type *);
    sf_value *operands = SF_ARRAY(&n->scratch, node->noperands, sf_value);
    for (uint32_t i = 0; i < node->nregions; i++) {
        regions[i] = sf_block_new(n->to);
        narrow_block(n, node->regions[i], regions[i]);
    }
    for (uint32_t i = 0; i < node->nresults; i++)
        types[i] = sf_type_of(n->from, node->result + i);
    for (uint32_t i = 0; i < node->noperands; i++)
        operands[i] = n->map[node->operands[i]];
    sf_node_spec spec = sf_spec_like(node);
    spec.operands = operands;
    spec.types = types;
    spec.attrs = node->attrs;
    spec.regions = regions;
    spec.recomputed = node->recomputed;
    sf_value result = sf_graph_add(n->to, block, &spec)->result;
    for (uint32_t i = 0; i < node->nresults; i++)
        n->map[node->result + i] = result + i;
}

static void narrow_block(narrowing *n, const sf_block *block, sf_block *copy)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        n->map[block->arguments[i]] =
            sf_block_argument(n->to, copy, sf_type_of(n->from, block->arguments[i]));
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = n->from->nodes[block->nodes[i]];
        if (is_narrowed(n, node))
            narrow_product(n, node, copy);
        else if (node->def->control != SF_CONTROL_NONE)
            narrow_regions(n, node, copy);
        else
            sf_node_clone(n->from, node, n->to, copy, n->map);
    }
    sf_value *results = SF_ARRAY(&n->scratch, block->nresults, sf_value);
    for (uint32_t i = 0; i < block->nresults; i++)
        results[i] = n->map[block->results[i]];
    sf_block_return(n->to, copy, block->nresults, results);
}

bool sf_narrows(sf_precision precision)
{
    return precision != SF_PRECISION_F32 && precision != SF_PRECISION_TF32;
}

sf_graph *sf_narrow_products(const sf_graph *graph, sf_precision precision, bool has_fp8)
{
    narrowing n = {
        .from = graph, .to = sf_graph_new(graph->pool), .precision = precision, .has_fp8 = has_fp8};
    n.map = SF_ARRAY(&n.scratch, graph->nvalues, sf_value);
    narrow_block(&n, graph->top, n.to->top);
    sf_graph_clone_head(graph, n.to);
    for (uint32_t i = 0; graph->arguments && i < graph->top->narguments; i++)
        if (graph->arguments[i].gradient != SF_NONE)
            n.to->arguments[i].gradient = n.map[graph->arguments[i].gradient];
    sf_arena_free(&n.scratch);
    return n.to;
}
