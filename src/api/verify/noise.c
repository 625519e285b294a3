#include "api/verify/noise.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "op/carry.h"
#include "op/op.h"
#include "op/slots.h"
#include "op/util.h"

/* The noisy step while it is made. */
typedef struct noising {
    const sf_graph *from;
    sf_graph *to;
    sf_value *map; /* by value of the step */
    sf_value pattern, sign;
    const sf_node *node; /* the current one: new nodes get its place */
    sf_block *block;
    bool asks; /* some product asks for a narrower type */
    sf_arena scratch;
} noising;

static sf_value emit(noising *n, sf_opcode code, const sf_type *type, const sf_attr *const *attrs,
                     uint32_t noperands, const sf_value *operands)
{
    sf_node_spec spec = {.def = sf_opdef_get(code),
                         .noperands = noperands,
                         .operands = operands,
                         .nresults = 1,
                         .types = &type,
                         .attrs = attrs,
                         .scope = n->node->scope,
                         .phase = n->node->phase,
                         .loc = n->node->loc};
    return sf_graph_add(n->to, n->block, &spec)->result;
}

static sf_value emit_one(noising *n, sf_opcode code, const sf_type *type, sf_value x)
{
    return sf_type_of(n->to, x) == type ? x : emit(n, code, type, NULL, 1, &x);
}

static sf_value emit_two(noising *n, sf_opcode code, sf_value x, sf_value y)
{
    return emit(n, code, sf_type_of(n->to, x), NULL, 2, (sf_value[]){x, y});
}

static sf_value emit_number(noising *n, const sf_type *type, double number)
{
    uint64_t element = 0;
    if (sf_is_float(type->dtype))
        sf_store_f64(type->dtype, &element, 0, number);
    else
        sf_store_i64(type->dtype, &element, 0, (int64_t)number);
    const sf_attr *attr = sf_attr_dense(n->to->pool, type, true, &element);
    return emit(n, SF_OP_CONSTANT, type, &attr, 0, NULL);
}

static sf_value emit_compare(noising *n, const char *direction, sf_value x, sf_value y)
{
    const sf_attr *attrs[SF_COMPARE_TYPE + 1] = {
        [SF_COMPARE_DIRECTION] = sf_attr_text(n->to->pool, sf_str_of(direction))};
    const sf_type *type = sf_type_with(n->to->pool, sf_type_of(n->to, x), SF_PRED);
    return emit(n, SF_OP_COMPARE, type, attrs, 2, (sf_value[]){x, y});
}

/* A number of the step, everywhere. */
static sf_value emit_everywhere(noising *n, const sf_type *type, sf_value x)
{
    const sf_attr *attr = sf_attr_ints(n->to->pool, 0, NULL);
    return type->rank == 0 ? x : emit(n, SF_OP_BROADCAST_IN_DIM, type, &attr, 1, &x);
}

/* (h ^ x) * an odd number: its upper bits depend on all bits of both. */
static sf_value emit_mix(noising *n, sf_value h, sf_value x)
{
    sf_value odd = emit_number(n, sf_type_of(n->to, h), 0x9E3779B1);
    return emit_two(n, SF_OP_MULTIPLY, emit_two(n, SF_OP_XOR, h, x), odd);
}

/* 0 or 1 for each element, by its place, the pattern, and `salt`, as numbers of `type`. */
static sf_value emit_coins(noising *n, const sf_type *type, uint32_t salt)
{
    const sf_type *bits = sf_type_with(n->to->pool, type, SF_U32);
    sf_value h = emit_everywhere(n, bits, n->pattern);
    h = emit_mix(n, h, emit_number(n, bits, salt));
    for (int64_t d = 0; d < bits->rank; d++) {
        const sf_attr *dimension = sf_attr_int(n->to->pool, d);
        if (bits->dims[d] > 1)
            h = emit_mix(n, h, emit(n, SF_OP_IOTA, bits, &dimension, 0, NULL));
    }
    sf_value upper = emit_two(n, SF_OP_SHIFT_RIGHT_LOGICAL, h, emit_number(n, bits, 15));
    h = emit_two(n, SF_OP_SHIFT_RIGHT_LOGICAL, emit_mix(n, h, upper), emit_number(n, bits, 31));
    return emit_one(n, SF_OP_CONVERT, type, h);
}

static double amplitude(sf_dtype dtype)
{
    const sf_dtype_info *info = sf_dtype_get(dtype);
    int units = info->bits > 16  ? SF_NOISE_UNITS
                : info->bits > 8 ? SF_NOISE_UNITS_NARROW
                                 : SF_NOISE_UNITS_NARROWEST;
    return ldexp(units, -info->mantissa - 1);
}

/* The type that a value of the step was last rounded to: another than its own, where that has room for all numbers of it. */
static sf_dtype rounded_to(const noising *n, sf_value value)
{
    const sf_node *maker = sf_maker(n->from, value);
    const sf_type *type = sf_type_of(n->from, value);
    if (!maker || !sf_is(maker, SF_OP_CONVERT))
        return type->dtype;
    sf_dtype before = sf_type_of(n->from, maker->operands[0])->dtype;
    bool is_widened = sf_is_float(before) && sf_dtype_get(before)->bits <= 8 &&
                      sf_dtype_get(type->dtype)->bits > 8;
    return is_widened ? before : type->dtype;
}

/* Whole numbers so small that their sums and products are exact. */
static sf_value emit_is_exact(noising *n, sf_dtype dtype, sf_value x)
{
    const sf_type *type = sf_type_of(n->to, x);
    double most = ldexp(1, sf_dtype_get(dtype)->mantissa / 2);
    sf_value is_whole = emit_compare(n, "EQ", emit(n, SF_OP_FLOOR, type, NULL, 1, &x), x);
    sf_value size = emit(n, SF_OP_ABS, type, NULL, 1, &x);
    sf_value is_small = emit_compare(n, "LE", size, emit_number(n, type, most));
    return emit_two(n, SF_OP_AND, is_whole, is_small);
}

/* The value with noise of that type, which depends on `salt`. */
static sf_value add_noise(noising *n, sf_value value, sf_dtype rounded, uint32_t salt)
{
    const sf_type *type = sf_type_of(n->to, value);
    sf_dtype dtype = type->dtype == SF_F64 ? SF_F64 : SF_F32;
    const sf_type *wide = sf_type_with(n->to->pool, type, dtype);
    sf_value x = emit_one(n, SF_OP_CONVERT, wide, value);
    sf_value sign = emit_one(n, SF_OP_CONVERT, sf_type_scalar(n->to->pool, dtype), n->sign);
    sf_value a = emit_two(n, SF_OP_MULTIPLY, emit_everywhere(n, wide, sign),
                          emit_number(n, wide, amplitude(rounded)));
    sf_value twice = emit_two(n, SF_OP_ADD, a, a);
    sf_value coins = emit_two(n, SF_OP_MULTIPLY, emit_coins(n, wide, salt), twice);
    sf_value part = emit_two(n, SF_OP_SUBTRACT, coins, a);
    sf_value moved = emit_two(n, SF_OP_ADD, x, emit_two(n, SF_OP_MULTIPLY, x, part));
    sf_value exact = emit_is_exact(n, rounded, x);
    sf_value chosen = emit(n, SF_OP_SELECT, wide, NULL, 3, (sf_value[]){exact, x, moved});
    return emit_one(n, SF_OP_CONVERT, type, chosen);
}

/* Whether the op adds up (or multiplies) along a loop, and, by operand, whether that loop walks it. */
static bool find_terms(noising *n, const sf_node *node, bool *is_term)
{
    const sf_type **types =
        SF_ARRAY(&n->scratch, node->noperands + node->nresults, const sf_type *);
    sf_op op = sf_op_of(n->from, node, types);
    sf_factoring factoring;
    bool any = false;
    sf_op_factors(&op, &n->scratch, &factoring);
    for (uint32_t i = 0; i < node->noperands; i++)
        for (int d = 0; d < types[i]->rank; d++) {
            const sf_walk *walk = &factoring.walks[i][d];
            for (int k = 0; k < walk->count; k++) {
                const sf_factor *factor = &factoring.factors[walk->factors[k]];
                bool adds = factor->role == SF_REDUCE && factor->size > 1 &&
                            (factor->monoid == SF_MONOID_ADD || factor->monoid == SF_MONOID_MUL);
                is_term[i] = is_term[i] || adds;
                any = any || adds;
            }
        }
    return any;
}

static bool has_16_bits(sf_dtype dtype)
{
    return dtype == SF_BF16 || dtype == SF_F16;
}

/* The 16-bit type of a product that is a factor of the value; SF_F32: there is none. */
static sf_dtype narrow_factor(const noising *n, sf_value value, int depth)
{
    const sf_node *maker = sf_maker(n->from, value);
    sf_dtype dtype = SF_F32;
    if (!maker || depth == 0)
        return dtype;
    if (sf_is(maker, SF_OP_DOT_GENERAL))
        dtype = sf_type_of(n->from, value)->dtype;
    else if (sf_carries(maker, SF_CARRIES_TYPE | SF_CARRIES_SHAPE | SF_CARRIES_ORDER))
        dtype = narrow_factor(n, maker->operands[0], depth - 1);
    for (uint32_t i = 0; sf_is(maker, SF_OP_MULTIPLY) && i < 2 && !has_16_bits(dtype); i++)
        dtype = narrow_factor(n, maker->operands[i], depth - 1);
    return has_16_bits(dtype) ? dtype : SF_F32;
}

static bool asks_for_less(const sf_graph *graph)
{
    for (size_t i = 0; i < graph->nnodes; i++) {
        const sf_node *node = graph->nodes[i];
        for (uint32_t o = 0; sf_is(node, SF_OP_DOT_GENERAL) && o < 2; o++) {
            sf_dtype has = sf_type_of(graph, node->operands[o])->dtype;
            if (sf_asked_dtype(node, (int)o, has) != has)
                return true;
        }
    }
    return false;
}

/* The type to which the result of a sum may be rounded. Where products ask for less, kernels of attention take the sums of weights
 * times their gradients from what they have rounded: the output. */
static sf_dtype sum_rounded_to(const noising *n, const sf_node *node, sf_dtype has)
{
    enum { DEEPEST = 8 };
    const sf_node *terms = sf_is(node, SF_OP_REDUCE) ? sf_maker(n->from, node->operands[0]) : NULL;
    bool are_products = n->asks && terms && sf_is(terms, SF_OP_MULTIPLY);
    sf_dtype narrow = are_products ? narrow_factor(n, node->operands[0], DEEPEST) : has;
    return has == SF_F32 && has_16_bits(narrow) ? narrow : sf_asked_dtype(node, 0, has);
}

static void copy_block(noising *n, const sf_block *block, sf_block *copy);

static void copy_node(noising *n, const sf_node *node, sf_block *block)
{
    sf_block **regions = SF_ARRAY(&n->scratch, node->nregions, sf_block *);
    const sf_type **types = SF_ARRAY(&n->scratch, node->nresults, const sf_type *);
    sf_value *operands = SF_ARRAY(&n->scratch, node->noperands, sf_value);
    bool *is_term = SF_ARRAY(&n->scratch, node->noperands, bool);
    for (uint32_t i = 0; i < node->nregions; i++)
        copy_block(n, node->regions[i], regions[i] = sf_block_new(n->to));
    n->node = node;
    n->block = block;
    bool adds = find_terms(n, node, is_term);
    for (uint32_t i = 0; i < node->noperands; i++) {
        operands[i] = n->map[node->operands[i]];
        if (is_term[i] && sf_is_float(sf_type_of(n->to, operands[i])->dtype))
            operands[i] = add_noise(n, operands[i],
                                    sf_asked_dtype(node, (int)i, rounded_to(n, node->operands[i])),
                                    2 * node->operands[i]);
    }
    for (uint32_t i = 0; i < node->nresults; i++)
        types[i] = sf_type_of(n->from, node->result + i);
    sf_node_spec spec = sf_spec_like(node);
    spec.operands = operands;
    spec.types = types;
    spec.attrs = node->attrs;
    spec.regions = regions;
    sf_value result = sf_graph_add(n->to, block, &spec)->result;
    for (uint32_t i = 0; i < node->nresults; i++)
        n->map[node->result + i] =
            adds && sf_is_float(types[i]->dtype)
                ? add_noise(n, result + i, sum_rounded_to(n, node, types[i]->dtype),
                            2 * (node->result + i) + 1)
                : result + i;
}

static void copy_nodes(noising *n, const sf_block *block, sf_block *copy)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        sf_mark mark = sf_arena_mark(&n->scratch);
        copy_node(n, n->from->nodes[block->nodes[i]], copy);
        sf_arena_reset(&n->scratch, mark);
    }
    sf_value *results = SF_ARRAY(&n->scratch, block->nresults, sf_value);
    for (uint32_t i = 0; i < block->nresults; i++)
        results[i] = n->map[block->results[i]];
    sf_block_return(n->to, copy, block->nresults, results);
}

static void copy_arguments(noising *n, const sf_block *block, sf_block *copy)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        n->map[block->arguments[i]] =
            sf_block_argument(n->to, copy, sf_type_of(n->from, block->arguments[i]));
}

static void copy_block(noising *n, const sf_block *block, sf_block *copy)
{
    copy_arguments(n, block, copy);
    copy_nodes(n, block, copy);
}

static void copy_head(noising *n)
{
    const sf_graph *from = n->from;
    sf_graph *to = n->to;
    uint32_t count = from->top->narguments;
    to->name = from->name;
    to->results =
        sf_arena_copy(&to->arena, from->results, from->top->nresults * sizeof *from->results);
    to->arguments = SF_ARRAY(&to->arena, count + SF_NOISE_ARGUMENTS, sf_argument);
    memcpy(to->arguments, from->arguments, count * sizeof *to->arguments);
    for (uint32_t i = 0; i < count; i++)
        to->arguments[i].gradient = SF_NONE;
    for (uint32_t i = 0; i < SF_NOISE_ARGUMENTS; i++)
        to->arguments[count + i] = (sf_argument){
            .name = "noise", .role = SF_ROLE_OTHER, .next = SF_NONE, .gradient = SF_NONE};
}

sf_graph *sf_noisy_graph(const sf_graph *graph)
{
    sf_pool *pool = sf_pool_derive(graph->pool);
    noising n = {.from = graph, .to = sf_graph_new(pool), .asks = asks_for_less(graph)};
    sf_pool_release(pool);
    n.map = SF_ARRAY(&n.to->arena, graph->nvalues, sf_value);
    copy_arguments(&n, graph->top, n.to->top);
    n.pattern = sf_block_argument(n.to, n.to->top, sf_type_scalar(pool, SF_U32));
    n.sign = sf_block_argument(n.to, n.to->top, sf_type_scalar(pool, SF_F32));
    copy_nodes(&n, graph->top, n.to->top);
    copy_head(&n);
    sf_arena_free(&n.scratch);
    return n.to;
}
