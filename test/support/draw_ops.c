/* Generators of ops that compute or move elements one by one, and the table of all generators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/draw.h"
#include "support/draw_kinds.h"

/* Units in the last place between our functions and the oracle's, besides the last rounding. */
enum { ULPS = 4 };

static const test_tolerance exact = {0, 0};

/* Correctly rounded in every type, whether it is computed there, in 32 bits or in 64. */
static bool is_exact(sf_opcode op)
{
    static const sf_opcode ops[] = {
        SF_OP_ABS,
        SF_OP_CEIL,
        SF_OP_FLOOR,
        SF_OP_IS_FINITE,
        SF_OP_NEGATE,
        SF_OP_SIGN,
        SF_OP_SQRT,
        SF_OP_ADD,
        SF_OP_ROUND_NEAREST_AFZ,
        SF_OP_DIVIDE,
        SF_OP_MAXIMUM,
        SF_OP_MINIMUM,
        SF_OP_SQUARE,
        SF_OP_ROUND_NEAREST_EVEN,
        SF_OP_MULTIPLY,
        SF_OP_SUBTRACT,
        SF_OP_REMAINDER,
        SF_OP_NEXT_AFTER,
        SF_OP_REAL,
        SF_OP_IMAG,
        SF_OP_COMPLEX,
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i] == op)
            return true;
    return false;
}

static test_tolerance pointwise_tolerance(sf_opcode op, sf_dtype dtype)
{
    if (is_exact(op) || !sf_is_float(dtype))
        return exact;
    double kept = test_epsilon(dtype == SF_F64 ? SF_F64 : SF_F32);
    double own = sf_dtype_get(dtype)->bits < 32 ? test_epsilon(dtype) : 0;
    double least = dtype == SF_F64 ? 1e-307 : 2e-38, smallest = test_smallest(dtype);
    if (op == SF_OP_LGAMMA) /* it is zero at 1 and 2, where its parts are not */
        least = 4 * kept;
    return (test_tolerance){ULPS * kept + own, smallest > least ? smallest : least};
}

static test_range any_range(test_case *c)
{
    return test_chance(c, 50) ? test_wild : (test_range){.low = -5, .high = 5};
}

static void draw_pointwise(test_case *c)
{
    const sf_opdef *def = sf_opdef_get(c->op);
    test_spec s = {.op = c->op, .noperands = (uint32_t)def->min_operands, .nresults = 1};
    const sf_type *type = test_type(c, SF_F32, 0, 5);
    test_range range = any_range(c);
    for (;;) { /* until a type is drawn that the op takes */
        type = sf_type_with(c->pool, type, test_any_dtype(c));
        const sf_type *in[] = {type, type}, *out = NULL;
        sf_op op = {.def = def,
                    .noperands = def->min_operands,
                    .nresults = 1,
                    .in = in,
                    .attrs = s.attrs,
                    .pool = c->pool};
        if (sf_infer(&op, &out, NULL) == SF_OK)
            break;
    }
    for (uint32_t i = 0; i < s.noperands; i++)
        s.operands[i] = test_operand(c, type, range);
    test_finish(c, &s, pointwise_tolerance(c->op, type->dtype));
}

static sf_value scalar_or_like(test_case *c, const sf_type *type, test_range range)
{
    return test_operand(c, test_chance(c, 40) ? sf_type_scalar(c->pool, type->dtype) : type, range);
}

static void draw_clamp(test_case *c)
{
    const sf_type *type = test_type(c, test_ordered_dtype(c), 0, 5);
    test_range range = any_range(c);
    test_spec s = {.op = c->op, .noperands = 3, .nresults = 1};
    s.operands[0] = scalar_or_like(c, type, range);
    s.operands[1] = test_operand(c, type, range);
    s.operands[2] = scalar_or_like(c, type, range);
    test_finish(c, &s, exact);
}

static void draw_compare(test_case *c)
{
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    static const char *const kinds[] = {[SF_BOOLEAN] = "UNSIGNED",
                                        [SF_SIGNED] = "SIGNED",
                                        [SF_UNSIGNED] = "UNSIGNED",
                                        [SF_FLOAT] = "FLOAT",
                                        [SF_COMPLEX] = "FLOAT"};
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    sf_class class = sf_dtype_get(type->dtype)->class;
    test_range range = any_range(c);
    test_spec s = {.op = c->op, .noperands = 2, .nresults = 1};
    c->only_views = class == SF_FLOAT && test_chance(c, 25);
    if (c->only_views || test_chance(c, 50))
        test_set_text(c, &s, "compare_type", c->only_views ? "TOTALORDER" : kinds[class]);
    test_set_text(c, &s, "comparison_direction",
                  directions[test_pick(c, 0, class == SF_COMPLEX ? 1 : 5)]);
    s.operands[0] = test_operand(c, type, range);
    s.operands[1] = test_operand(c, type, range);
    test_finish(c, &s, exact);
}

static void draw_select(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    test_range range = any_range(c);
    test_spec s = {.op = c->op, .noperands = 3, .nresults = 1};
    s.operands[0] = scalar_or_like(c, sf_type_with(c->pool, type, SF_PRED), test_wild);
    s.operands[1] = test_operand(c, type, range);
    s.operands[2] = test_operand(c, type, range);
    test_finish(c, &s, exact);
}

static void draw_bitcast_convert(test_case *c)
{
    sf_dtype from, to;
    int wide, narrow;
    do {
        from = test_any_dtype(c);
        to = test_any_dtype(c);
        int a = sf_dtype_get(from)->bits, b = sf_dtype_get(to)->bits;
        wide = a > b ? a : b;
        narrow = a > b ? b : a;
    } while (wide % narrow != 0 || narrow == 1);
    c->only_views = sf_is_inexact(from);
    bool shrinks = sf_dtype_get(to)->bits == narrow && wide != narrow;
    const sf_type *large = test_type(c, shrinks ? from : to, 0, 4);
    int64_t dims[SF_MAX_RANK];
    memcpy(dims, large->dims, (size_t)large->rank * sizeof *dims);
    dims[large->rank] = wide / narrow;
    const sf_type *small =
        sf_type_get(c->pool, shrinks ? to : from, large->rank + (wide != narrow), dims);
    test_spec s = {.op = c->op,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {test_operand(c, shrinks ? large : small, test_wild)},
                   .types = {shrinks ? small : large}};
    test_finish(c, &s, exact);
}

static void draw_convert(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    test_spec s = {.op = c->op,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {test_operand(c, type, any_range(c))},
                   .types = {sf_type_with(c->pool, type, test_any_dtype(c))}};
    test_finish(c, &s, exact);
}

static void draw_reduce_precision(test_case *c)
{
    const sf_type *type = test_type(c, test_dtype(c, 1 << SF_FLOAT), 0, 5);
    test_spec s = {.op = c->op,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {test_operand(c, type, any_range(c))}};
    test_set_int(c, &s, "exponent_bits", test_pick(c, 1, 12));
    test_set_int(c, &s, "mantissa_bits", test_pick(c, 0, 54));
    test_finish(c, &s, exact);
}

static void draw_broadcast_in_dim(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    int64_t kept[SF_MAX_RANK], dims[SF_MAX_RANK];
    int count = 0;
    for (int d = 0; d < type->rank; d++)
        if (test_chance(c, 60))
            kept[count++] = d;
    if (test_chance(c, 40))
        test_shuffle(c, count, kept);
    for (int i = 0; i < count; i++)
        dims[i] = test_chance(c, 25) ? 1 : type->dims[kept[i]];
    const sf_type *from = sf_type_get(c->pool, type->dtype, count, dims);
    test_spec s = {.op = c->op,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {test_operand(c, from, any_range(c))},
                   .types = {type}};
    test_set_ints(c, &s, "broadcast_dimensions", count, kept);
    test_finish(c, &s, exact);
}

static void draw_constant(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    sf_value value = test_constant(c, type, any_range(c));
    test_spec s = {.op = c->op, .nresults = 1};
    s.attrs[0] = sf_maker(c->graph, value)->attrs[0];
    test_finish(c, &s, exact);
}

static void draw_iota(test_case *c)
{
    int numbers = 1 << SF_SIGNED | 1 << SF_UNSIGNED | 1 << SF_FLOAT | 1 << SF_COMPLEX;
    const sf_type *type = test_type(c, test_dtype(c, numbers), 1, 5);
    test_spec s = {.op = c->op, .nresults = 1, .types = {type}};
    test_set_int(c, &s, "iota_dimension", test_pick(c, 0, type->rank - 1));
    test_finish(c, &s, exact);
}

/* Any shape with as many elements: the primes of the count, dealt out to some dimensions. */
static void draw_reshape(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    int64_t dims[SF_MAX_RANK];
    int rank = (int)test_pick(c, type->count == 1 ? 0 : 1, 5);
    for (int d = 0; d < rank; d++)
        dims[d] = type->count == 0 ? test_pick(c, 0, 3) : 1;
    if (type->count == 0)
        dims[test_pick(c, 0, rank - 1)] = 0;
    int64_t left = type->count;
    for (int64_t p = 2; left > 1; p++)
        for (; left % p == 0; left /= p)
            dims[test_pick(c, 0, rank - 1)] *= p;
    test_spec s = {.op = c->op,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {test_operand(c, type, any_range(c))},
                   .types = {sf_type_get(c->pool, type->dtype, rank, dims)}};
    test_finish(c, &s, exact);
}

static void draw_transpose(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 6);
    int64_t order[SF_MAX_RANK];
    for (int d = 0; d < type->rank; d++)
        order[d] = d;
    test_shuffle(c, type->rank, order);
    test_spec s = {.op = c->op,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {test_operand(c, type, any_range(c))}};
    test_set_ints(c, &s, "permutation", type->rank, order);
    test_finish(c, &s, exact);
}

static void draw_concatenate(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 1, 5);
    int64_t dim = test_pick(c, 0, type->rank - 1), dims[SF_MAX_RANK];
    test_range range = any_range(c);
    test_spec s = {.op = c->op, .noperands = (uint32_t)test_pick(c, 1, 5), .nresults = 1};
    memcpy(dims, type->dims, (size_t)type->rank * sizeof *dims);
    for (uint32_t i = 0; i < s.noperands; i++) {
        dims[dim] = test_pick(c, 0, type->dims[dim] + 2);
        s.operands[i] = test_operand(c, sf_type_get(c->pool, type->dtype, type->rank, dims), range);
    }
    test_set_int(c, &s, "dimension", dim);
    test_finish(c, &s, exact);
}

/* Start indices, some of them out of bounds. */
static void add_starts(test_case *c, test_spec *s, const sf_type *type)
{
    const sf_type *index = sf_type_scalar(c->pool, test_index_dtype(c));
    for (int d = 0; d < type->rank; d++)
        s->operands[s->noperands++] =
            test_operand(c, index, (test_range){.low = -2, .high = type->dims[d] + 2});
}

static void draw_dynamic_slice(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    int64_t sizes[SF_MAX_RANK];
    for (int d = 0; d < type->rank; d++)
        sizes[d] = test_chance(c, 40) ? type->dims[d] : test_pick(c, 0, type->dims[d]);
    test_spec s = {.op = c->op,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {test_operand(c, type, any_range(c))}};
    add_starts(c, &s, type);
    test_set_ints(c, &s, "slice_sizes", type->rank, sizes);
    test_finish(c, &s, exact);
}

static void draw_dynamic_update_slice(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    int64_t sizes[SF_MAX_RANK];
    test_range range = any_range(c);
    for (int d = 0; d < type->rank; d++)
        sizes[d] = test_chance(c, 40) ? type->dims[d] : test_pick(c, 0, type->dims[d]);
    const sf_type *update = sf_type_get(c->pool, type->dtype, type->rank, sizes);
    test_spec s = {.op = c->op, .noperands = 2, .nresults = 1};
    s.operands[0] = test_operand(c, type, range);
    s.operands[1] = test_operand(c, update, range);
    add_starts(c, &s, type);
    test_finish(c, &s, exact);
}

static void draw_pad(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    int64_t low[SF_MAX_RANK], high[SF_MAX_RANK], interior[SF_MAX_RANK];
    test_range range = any_range(c);
    for (int d = 0; d < type->rank; d++) {
        int64_t size = type->dims[d];
        interior[d] = test_chance(c, 70) ? 0 : test_pick(c, 1, 3);
        int64_t spread = size == 0 ? 0 : (size - 1) * (interior[d] + 1) + 1;
        low[d] = test_chance(c, 40) ? 0 : test_pick(c, spread < 4 ? -spread : -4, 4);
        int64_t left = spread + low[d];
        high[d] = test_chance(c, 40) ? 0 : test_pick(c, left < 4 ? -left : -4, 4);
    }
    test_spec s = {.op = c->op, .noperands = 2, .nresults = 1};
    s.operands[0] = test_operand(c, type, range);
    s.operands[1] = test_operand(c, sf_type_scalar(c->pool, type->dtype), range);
    test_set_ints(c, &s, "edge_padding_low", type->rank, low);
    test_set_ints(c, &s, "edge_padding_high", type->rank, high);
    test_set_ints(c, &s, "interior_padding", type->rank, interior);
    test_finish(c, &s, exact);
}

static void draw_reverse(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    int64_t dims[SF_MAX_RANK];
    int count = 0;
    for (int d = 0; d < type->rank; d++)
        if (test_chance(c, 50))
            dims[count++] = d;
    test_spec s = {.op = c->op,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {test_operand(c, type, any_range(c))}};
    test_set_ints(c, &s, "dimensions", count, dims);
    test_finish(c, &s, exact);
}

static void draw_slice(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    int64_t starts[SF_MAX_RANK], limits[SF_MAX_RANK], strides[SF_MAX_RANK];
    for (int d = 0; d < type->rank; d++) {
        starts[d] = test_chance(c, 50) ? 0 : test_pick(c, 0, type->dims[d]);
        limits[d] = test_chance(c, 50) ? type->dims[d] : test_pick(c, starts[d], type->dims[d]);
        strides[d] = test_pick(c, 1, test_chance(c, 20) ? 40 : 3);
    }
    test_spec s = {.op = c->op,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {test_operand(c, type, any_range(c))}};
    test_set_ints(c, &s, "start_indices", type->rank, starts);
    test_set_ints(c, &s, "limit_indices", type->rank, limits);
    test_set_ints(c, &s, "strides", type->rank, strides);
    test_finish(c, &s, exact);
}

#define POINTWISE(id) [SF_OP_##id] = draw_pointwise

test_generator *const test_generators[SF_OP_COUNT] = {
    POINTWISE(ABS),
    POINTWISE(CBRT),
    POINTWISE(CEIL),
    POINTWISE(COSINE),
    POINTWISE(COUNT_LEADING_ZEROS),
    POINTWISE(EXPONENTIAL),
    POINTWISE(EXPONENTIAL_MINUS_ONE),
    POINTWISE(FLOOR),
    POINTWISE(IMAG),
    POINTWISE(IS_FINITE),
    POINTWISE(LOG),
    POINTWISE(LOG_PLUS_ONE),
    POINTWISE(LOGISTIC),
    POINTWISE(NEGATE),
    POINTWISE(NOT),
    POINTWISE(POPCNT),
    POINTWISE(REAL),
    POINTWISE(ROUND_NEAREST_AFZ),
    POINTWISE(ROUND_NEAREST_EVEN),
    POINTWISE(RSQRT),
    POINTWISE(SIGN),
    POINTWISE(SINE),
    POINTWISE(SQRT),
    POINTWISE(TAN),
    POINTWISE(TANH),
    POINTWISE(ADD),
    POINTWISE(AND),
    POINTWISE(ATAN2),
    POINTWISE(COMPLEX),
    POINTWISE(DIVIDE),
    POINTWISE(MAXIMUM),
    POINTWISE(MINIMUM),
    POINTWISE(MULTIPLY),
    POINTWISE(OR),
    POINTWISE(POWER),
    POINTWISE(REMAINDER),
    POINTWISE(SHIFT_LEFT),
    POINTWISE(SHIFT_RIGHT_ARITHMETIC),
    POINTWISE(SHIFT_RIGHT_LOGICAL),
    POINTWISE(SUBTRACT),
    POINTWISE(XOR),
    POINTWISE(ACOS),
    POINTWISE(ACOSH),
    POINTWISE(ASIN),
    POINTWISE(ASINH),
    POINTWISE(ATAN),
    POINTWISE(ATANH),
    POINTWISE(BESSEL_I1E),
    POINTWISE(CHLO_TAN),
    POINTWISE(COSH),
    POINTWISE(DIGAMMA),
    POINTWISE(ERF),
    POINTWISE(ERF_INV),
    POINTWISE(ERFC),
    POINTWISE(LGAMMA),
    POINTWISE(NEXT_AFTER),
    POINTWISE(POLYGAMMA),
    POINTWISE(SINH),
    POINTWISE(SQUARE),
    POINTWISE(ZETA),
    [SF_OP_CLAMP] = draw_clamp,
    [SF_OP_COMPARE] = draw_compare,
    [SF_OP_SELECT] = draw_select,
    [SF_OP_BITCAST_CONVERT] = draw_bitcast_convert,
    [SF_OP_CONVERT] = draw_convert,
    [SF_OP_REDUCE_PRECISION] = draw_reduce_precision,
    [SF_OP_BROADCAST_IN_DIM] = draw_broadcast_in_dim,
    [SF_OP_CONSTANT] = draw_constant,
    [SF_OP_IOTA] = draw_iota,
    [SF_OP_RESHAPE] = draw_reshape,
    [SF_OP_TRANSPOSE] = draw_transpose,
    [SF_OP_CONCATENATE] = draw_concatenate,
    [SF_OP_DYNAMIC_SLICE] = draw_dynamic_slice,
    [SF_OP_DYNAMIC_UPDATE_SLICE] = draw_dynamic_update_slice,
    [SF_OP_PAD] = draw_pad,
    [SF_OP_REVERSE] = draw_reverse,
    [SF_OP_SLICE] = draw_slice,
    [SF_OP_DOT_GENERAL] = test_draw_dot_general,
    [SF_OP_CONVOLUTION] = test_draw_convolution,
    [SF_OP_REDUCE] = test_draw_reduce,
    [SF_OP_REDUCE_WINDOW] = test_draw_reduce_window,
    [SF_OP_SELECT_AND_SCATTER] = test_draw_select_and_scatter,
    [SF_OP_GATHER] = test_draw_gather,
    [SF_OP_SCATTER] = test_draw_scatter,
    [SF_OP_SORT] = test_draw_sort,
    [SF_OP_TOP_K] = test_draw_top_k,
    [SF_OP_FFT] = test_draw_fft,
    [SF_OP_CHOLESKY] = test_draw_cholesky,
    [SF_OP_TRIANGULAR_SOLVE] = test_draw_triangular_solve,
    [SF_OP_RNG_BIT_GENERATOR] = test_draw_rng_bit_generator,
    [SF_OP_CASE] = test_draw_case,
    [SF_OP_CUSTOM_CALL] = test_draw_custom_call,
    [SF_OP_OPTIMIZATION_BARRIER] = test_draw_optimization_barrier,
    [SF_OP_WHILE] = test_draw_while,
};
