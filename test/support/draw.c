#include "support/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "op/slots.h"

const test_range test_small = {.low = -2, .high = 2}, test_wild = {.wild = true};

int64_t test_pick(test_case *c, int64_t low, int64_t high)
{
    return test_draw(&c->random, low, high);
}

bool test_chance(test_case *c, int percent)
{
    return test_pick(c, 1, 100) <= percent;
}

void test_shuffle(test_case *c, int count, int64_t *values)
{
    for (int i = count - 1; i > 0; i--) {
        int64_t j = test_pick(c, 0, i), value = values[i];
        values[i] = values[j];
        values[j] = value;
    }
}

sf_dtype test_dtype(test_case *c, int classes)
{
    static const sf_dtype common[] = {SF_F32, SF_F32, SF_F32, SF_BF16, SF_F16, SF_F64,
                                      SF_S32, SF_S32, SF_U32, SF_PRED, SF_C64};
    for (;;) {
        sf_dtype dtype = test_chance(c, 60) ? common[test_pick(c, 0, 10)]
                                            : (sf_dtype)test_pick(c, 0, SF_DTYPE_COUNT - 1);
        if (classes >> sf_dtype_get(dtype)->class & 1)
            return dtype;
    }
}

sf_dtype test_any_dtype(test_case *c)
{
    return test_dtype(c, ~0);
}

sf_dtype test_ordered_dtype(test_case *c)
{
    return test_dtype(c, ~(1 << SF_COMPLEX));
}

sf_dtype test_index_dtype(test_case *c)
{
    static const sf_dtype dtypes[] = {SF_S32, SF_S32, SF_S64, SF_U32, SF_U8, SF_S8, SF_S16, SF_U64};
    return dtypes[test_pick(c, 0, 7)];
}

/* Nothing, one, few, odd, around powers of two, and past a tile. */
static int64_t draw_dim(test_case *c, int64_t most)
{
    static const int64_t interesting[] = {
        2,  3,  4,  5,   7,   8,   9,   13,  15,  16,  17,  23,   31,   32,   33,   47,   63,  64,
        65, 96, 97, 127, 128, 129, 131, 251, 256, 257, 509, 1021, 1024, 1031, 2049, 4099, 9001};
    enum { COUNT = sizeof interesting / sizeof *interesting };
    if (test_chance(c, 2))
        return 0;
    if (most <= 1 || test_chance(c, 12))
        return 1;
    int count = 0;
    while (count < COUNT && interesting[count] <= most)
        count++;
    return count ? interesting[test_pick(c, test_chance(c, 40) ? count / 2 : 0, count - 1)] : 1;
}

void test_dims(test_case *c, int rank, int64_t *dims)
{
    int64_t order[SF_MAX_RANK], left = c->most;
    for (int d = 0; d < rank; d++)
        order[d] = d;
    test_shuffle(c, rank, order);
    for (int i = 0; i < rank; i++) {
        /* Later dimensions keep something for themselves, now and then. */
        int64_t most = i + 1 < rank && test_chance(c, 70) ? (int64_t)sqrt((double)left) : left;
        int64_t dim = draw_dim(c, most);
        dims[order[i]] = dim;
        if (dim > 1)
            left /= dim;
    }
}

const sf_type *test_type(test_case *c, sf_dtype dtype, int least_rank, int most_rank)
{
    int64_t dims[SF_MAX_RANK];
    int rank = (int)test_pick(c, least_rank, most_rank);
    test_dims(c, rank, dims);
    return sf_type_get(c->pool, dtype, rank, dims);
}

double test_smallest(sf_dtype dtype)
{
    const sf_dtype_info *info = sf_dtype_get(dtype);
    return sf_is_float(dtype) ? ldexp(1, 3 - (1 << info->exponent >> 1) - info->mantissa) : 0;
}

double test_epsilon(sf_dtype dtype)
{
    return sf_is_float(dtype) ? ldexp(1, -sf_dtype_get(dtype)->mantissa) : 0;
}

test_tolerance test_sum_tolerance(sf_dtype dtype, double terms, double magnitude)
{
    if (!sf_is_float(dtype))
        return (test_tolerance){0, 0};
    double kept = test_epsilon(dtype == SF_F64 ? SF_F64 : SF_F32);
    return (test_tolerance){test_epsilon(dtype), kept * terms * magnitude};
}

/* Nodes ------------------------------------------------------------------------------------------ */

void test_set(test_spec *spec, const char *name, const sf_attr *attr)
{
    int slot = sf_attr_slot(sf_opdef_get(spec->op), sf_str_of(name));
    assert_true(slot >= 0 && slot < 24);
    spec->attrs[slot] = attr;
}

void test_set_int(test_case *c, test_spec *spec, const char *name, int64_t value)
{
    test_set(spec, name, sf_attr_int(c->pool, value));
}

void test_set_ints(test_case *c, test_spec *spec, const char *name, int count,
                   const int64_t *values)
{
    test_set(spec, name, sf_attr_ints(c->pool, count, values));
}

void test_set_text(test_case *c, test_spec *spec, const char *name, const char *text)
{
    test_set(spec, name, sf_attr_text(c->pool, sf_str_of(text)));
}

static sf_status build(test_case *c, const test_spec *spec, sf_diag *diag, sf_node **out)
{
    sf_node_spec node = {
        .def = sf_opdef_get(spec->op),
        .noperands = spec->noperands,
        .nresults = spec->nresults,
        .nregions = spec->nregions,
        .operands = spec->operands,
        .types = spec->types[0] ? spec->types : NULL,
        .attrs = spec->attrs,
        .regions = spec->regions,
    };
    return sf_build(c->graph, c->block, &node, diag, out);
}

sf_node *test_try(test_case *c, const test_spec *spec)
{
    sf_node *node = NULL;
    return build(c, spec, NULL, &node) == SF_OK ? node : NULL;
}

sf_node *test_add(test_case *c, const test_spec *spec)
{
    sf_diag *diag = sf_diag_new();
    sf_node *node = NULL;
    if (build(c, spec, diag, &node) != SF_OK) {
        print_error("%s, seed %u: %s\n", sf_opdef_get(c->op)->name, c->random.key,
                    sf_diag_text(diag, 0));
        fail();
    }
    sf_diag_free(diag);
    return node;
}

sf_value test_unary(test_case *c, sf_opcode op, sf_value a)
{
    return test_add(c, &(test_spec){.op = op, .noperands = 1, .nresults = 1, .operands = {a}})
        ->result;
}

sf_value test_binary(test_case *c, sf_opcode op, sf_value a, sf_value b)
{
    return test_add(c, &(test_spec){.op = op, .noperands = 2, .nresults = 1, .operands = {a, b}})
        ->result;
}

sf_value test_compare(test_case *c, const char *direction, const char *kind, sf_value a, sf_value b)
{
    test_spec s = {.op = SF_OP_COMPARE, .noperands = 2, .nresults = 1, .operands = {a, b}};
    test_set_text(c, &s, "comparison_direction", direction);
    if (kind)
        test_set_text(c, &s, "compare_type", kind);
    return test_add(c, &s)->result;
}

sf_value test_iota(test_case *c, const sf_type *type, int64_t dim)
{
    test_spec s = {.op = SF_OP_IOTA, .nresults = 1, .types = {type}};
    test_set_int(c, &s, "iota_dimension", dim);
    return test_add(c, &s)->result;
}

sf_value test_broadcast(test_case *c, sf_value value, const sf_type *type, int count,
                        const int64_t *dims)
{
    test_spec s = {.op = SF_OP_BROADCAST_IN_DIM,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {value},
                   .types = {type}};
    test_set_ints(c, &s, "broadcast_dimensions", count, dims);
    return test_add(c, &s)->result;
}

sf_block *test_open(test_case *c, int count, const sf_dtype *dtypes, bool twice)
{
    sf_block *block = sf_block_new(c->graph);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < (twice ? 2 : 1); k++)
            sf_block_argument(c->graph, block, sf_type_scalar(c->pool, dtypes[i]));
    c->block = block;
    return block;
}

void test_close(test_case *c, sf_block *block, sf_block *outer, uint32_t count,
                const sf_value *results)
{
    sf_block_return(c->graph, block, count, results);
    c->block = outer;
}

/* Elements --------------------------------------------------------------------------------------- */

static void fill_wild(test_random *random, sf_tensor tensor)
{
    sf_dtype dtype = sf_part_of(tensor.type->dtype);
    int64_t count = tensor.type->count * sf_parts_of(tensor.type->dtype);
    static const double reals[] = {
        0, -0.0, 1, -1, 0.5, (double)INFINITY, -(double)INFINITY, (double)NAN, 1e30, -1e30, 1e-40};
    static const int64_t integers[] = {0, 1, -1, 2, INT64_MAX, INT64_MIN, 31, 32, 63, 64};
    for (int64_t i = 0; i < count; i++) {
        int64_t kind = test_draw(random, 0, 9);
        if (kind < 2 && sf_is_float(dtype))
            sf_store_f64(dtype, tensor.data, i, reals[test_draw(random, 0, 10)]);
        else if (kind < 2)
            sf_store_i64(dtype, tensor.data, i, integers[test_draw(random, 0, 9)]);
        else if (kind < 5)
            sf_store_f64(dtype, tensor.data, i, (double)test_draw(random, -300, 300) / 64);
        else if (kind < 7 && sf_is_float(dtype))
            sf_store_f64(
                dtype, tensor.data, i,
                ldexp((double)test_draw(random, -1000, 1000), (int)test_draw(random, -40, 40)));
        else
            sf_store_bits(dtype, tensor.data, i,
                          (uint64_t)test_draw(random, 0, INT32_MAX) << 33 ^
                              (uint64_t)test_draw(random, 0, INT32_MAX) << 13 ^
                              (uint64_t)test_draw(random, 0, INT32_MAX));
        /* There is one NaN, of either sign: what becomes of others is nowhere said. */
        if (sf_is_float(dtype) && isnan(sf_load_f64(dtype, tensor.data, i)))
            sf_store_f64(dtype, tensor.data, i, kind % 2 ? (double)NAN : -(double)NAN);
    }
}

static void fill(test_random *random, sf_tensor tensor, test_range range)
{
    sf_dtype dtype = sf_part_of(tensor.type->dtype);
    int64_t count = tensor.type->count * sf_parts_of(tensor.type->dtype);
    if (range.wild) {
        fill_wild(random, tensor);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        if (sf_is_float(dtype))
            sf_store_f64(dtype, tensor.data, i,
                         (double)test_draw(random, 64 * range.low, 64 * range.high) / 64);
        else
            sf_store_i64(dtype, tensor.data, i, test_draw(random, range.low, range.high));
}

void test_case_fill(test_case *c, uint32_t index, sf_tensor tensor)
{
    fill(&c->random, tensor, c->ranges[index]);
}

sf_value test_constant(test_case *c, const sf_type *type, test_range range)
{
    sf_tensor tensor = {.type = type, .data = sf_alloc((size_t)sf_type_bytes(type))};
    bool splat = type->count > 0 && test_chance(c, 30);
    sf_tensor one = {.type = sf_type_scalar(c->pool, type->dtype), .data = tensor.data};
    fill(&c->random, splat ? one : tensor, range);
    test_spec s = {.op = SF_OP_CONSTANT, .nresults = 1};
    test_set(&s, "value", sf_attr_dense(c->pool, type, splat, tensor.data));
    sf_free(tensor.data);
    return test_add(c, &s)->result;
}

/* Operands --------------------------------------------------------------------------------------- */

static sf_value through(test_case *c, const sf_type *type, test_range range, int depth);

static bool same_range(test_range a, test_range b)
{
    return a.wild == b.wild && a.low == b.low && a.high == b.high;
}

/* An argument, an old one or a new one; now and then a constant. A plain op has nothing to do with values
 * outside of its regions. */
static sf_value leaf(test_case *c, const sf_type *type, test_range range)
{
    sf_block *top = c->graph->top;
    if (c->plain ? c->block != top : type->count <= 64 && test_chance(c, 15))
        return test_constant(c, type, range);
    for (uint32_t i = 0; i < top->narguments; i++)
        if (sf_type_of(c->graph, top->arguments[i]) == type && same_range(c->ranges[i], range) &&
            (top->narguments == TEST_MOST_ARGUMENTS || test_chance(c, 30)))
            return top->arguments[i];
    assert_true(top->narguments < TEST_MOST_ARGUMENTS);
    c->ranges[top->narguments] = range;
    return sf_block_argument(c->graph, top, type);
}

static sf_value transposed(test_case *c, const sf_type *type, test_range range, int depth)
{
    int64_t order[SF_MAX_RANK], dims[SF_MAX_RANK];
    for (int d = 0; d < type->rank; d++)
        order[d] = d;
    test_shuffle(c, type->rank, order);
    for (int d = 0; d < type->rank; d++)
        dims[order[d]] = type->dims[d];
    const sf_type *from = sf_type_get(c->pool, type->dtype, type->rank, dims);
    test_spec s = {.op = SF_OP_TRANSPOSE,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {through(c, from, range, depth)}};
    test_set_ints(c, &s, "permutation", type->rank, order);
    return test_add(c, &s)->result;
}

/* Elements of what is sliced: each slice may be of one that is some hundred times as large. */
enum { MOST_SLICED = 1 << 24 };

static sf_value sliced(test_case *c, const sf_type *type, test_range range, int depth)
{
    int64_t starts[SF_MAX_RANK], limits[SF_MAX_RANK], strides[SF_MAX_RANK], dims[SF_MAX_RANK];
    for (int d = 0; d < type->rank; d++) {
        bool all = test_chance(c, 40);
        starts[d] = all ? 0 : test_pick(c, 0, 3);
        strides[d] = all || test_chance(c, 60) ? 1 : test_pick(c, 2, 3);
        limits[d] = starts[d];
        if (type->dims[d] > 0) /* a limit may stand anywhere behind the last element */
            limits[d] += (type->dims[d] - 1) * strides[d] + test_pick(c, 1, strides[d]);
        dims[d] = limits[d] + (all ? 0 : test_pick(c, 0, 3));
    }
    const sf_type *from = sf_type_get(c->pool, type->dtype, type->rank, dims);
    if (from->count > MOST_SLICED)
        return through(c, type, range, 0);
    test_spec s = {.op = SF_OP_SLICE,
                   .noperands = 1,
                   .nresults = 1,
                   .operands = {through(c, from, range, depth)}};
    test_set_ints(c, &s, "start_indices", type->rank, starts);
    test_set_ints(c, &s, "limit_indices", type->rank, limits);
    test_set_ints(c, &s, "strides", type->rank, strides);
    return test_add(c, &s)->result;
}

static sf_value reversed(test_case *c, sf_value value)
{
    int64_t dims[SF_MAX_RANK];
    int count = 0, rank = sf_type_of(c->graph, value)->rank;
    for (int d = 0; d < rank; d++)
        if (test_chance(c, 50))
            dims[count++] = d;
    test_spec s = {.op = SF_OP_REVERSE, .noperands = 1, .nresults = 1, .operands = {value}};
    test_set_ints(c, &s, "dimensions", count, dims);
    return test_add(c, &s)->result;
}

static sf_value broadcasted(test_case *c, const sf_type *type, test_range range, int depth)
{
    int64_t kept[SF_MAX_RANK], dims[SF_MAX_RANK];
    int count = 0;
    for (int d = 0; d < type->rank; d++)
        if (test_chance(c, 60))
            kept[count++] = d;
    if (test_chance(c, 20))
        test_shuffle(c, count, kept);
    for (int i = 0; i < count; i++)
        dims[i] = test_chance(c, 20) ? 1 : type->dims[kept[i]];
    const sf_type *from = sf_type_get(c->pool, type->dtype, count, dims);
    return test_broadcast(c, through(c, from, range, depth), type, count, kept);
}

/* The same elements in a shape of ones inserted, dimensions merged and dimensions split. */
static const sf_type *reshaped(test_case *c, const sf_type *type)
{
    int64_t dims[SF_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < type->rank && rank < 6; d++) {
        int64_t dim = type->dims[d], part = test_pick(c, 2, 5);
        if (rank > 0 && test_chance(c, 30)) {
            dims[rank - 1] *= dim;
            continue;
        }
        if (test_chance(c, 20))
            dims[rank++] = 1;
        if (dim > 0 && dim % part == 0 && test_chance(c, 50)) {
            dims[rank++] = part;
            dim /= part;
        }
        if (dim != 1 || test_chance(c, 50))
            dims[rank++] = dim;
    }
    const sf_type *result = sf_type_get(c->pool, type->dtype, rank, dims);
    return result->count == type->count ? result : type;
}

static sf_value reshape(test_case *c, sf_value value, const sf_type *type)
{
    return test_add(c, &(test_spec){.op = SF_OP_RESHAPE,
                                    .noperands = 1,
                                    .nresults = 1,
                                    .operands = {value},
                                    .types = {type}})
        ->result;
}

/* An exact op beside the one under test, which may be fused with it: the numbers stay in their range. */
static sf_value neighbour(test_case *c, const sf_type *type, test_range range, int depth)
{
    sf_class class = sf_dtype_get(type->dtype)->class;
    int64_t kind = test_pick(c, 0, 3);
    if (kind == 0 && class == SF_BOOLEAN)
        return test_unary(c, SF_OP_NOT, through(c, type, range, depth));
    if (kind == 0 && (range.wild || (class != SF_UNSIGNED && range.low == -range.high)))
        return test_unary(c, SF_OP_NEGATE, through(c, type, range, depth));
    if (kind == 1 && class == SF_FLOAT && type->dtype != SF_F64 && !range.wild) {
        sf_value wide = through(c, sf_type_with(c->pool, type, SF_F64), range, depth);
        return test_add(c, &(test_spec){.op = SF_OP_CONVERT,
                                        .noperands = 1,
                                        .nresults = 1,
                                        .operands = {wide},
                                        .types = {type}})
            ->result;
    }
    if (kind == 1 && class == SF_COMPLEX) {
        const sf_type *parts = sf_type_with(c->pool, type, sf_part_of(type->dtype));
        sf_value real = through(c, parts, range, depth), imag = through(c, parts, range, depth);
        return test_binary(c, SF_OP_COMPLEX, real, imag);
    }
    sf_value a = through(c, type, range, depth), b = through(c, type, range, depth);
    if (kind == 2 || class == SF_COMPLEX) {
        sf_value which = through(c, sf_type_with(c->pool, type, SF_PRED), test_wild, depth);
        test_spec s = {
            .op = SF_OP_SELECT, .noperands = 3, .nresults = 1, .operands = {which, a, b}};
        return test_add(c, &s)->result;
    }
    return test_binary(c, test_chance(c, 50) ? SF_OP_MAXIMUM : SF_OP_MINIMUM, a, b);
}

/* A part of complex numbers, where there are some with such parts. */
static sf_value part_of(test_case *c, const sf_type *type, test_range range, int depth)
{
    sf_dtype dtype;
    if (!sf_complex_of(type->dtype, &dtype) || c->block != c->graph->top)
        return reversed(c, through(c, type, range, depth));
    sf_value whole = through(c, sf_type_with(c->pool, type, dtype), range, depth);
    return test_unary(c, test_chance(c, 50) ? SF_OP_REAL : SF_OP_IMAG, whole);
}

static sf_value through(test_case *c, const sf_type *type, test_range range, int depth)
{
    if (depth == 0 || test_chance(c, 25))
        return leaf(c, type, range);
    if (test_chance(c, 10))
        return part_of(c, type, range, depth - 1);
    switch (test_pick(c, 0, c->only_views ? 5 : 6)) {
    case 0:
    case 1:
        return transposed(c, type, range, depth - 1);
    case 2:
        return sliced(c, type, range, depth - 1);
    case 3:
        return reversed(c, through(c, type, range, depth - 1));
    case 4:
        return broadcasted(c, type, range, depth - 1);
    case 5:
        return reshape(c, through(c, reshaped(c, type), range, depth - 1), type);
    default:
        return neighbour(c, type, range, depth - 1);
    }
}

sf_value test_operand(test_case *c, const sf_type *type, test_range range)
{
    static const int depths[] = {0, 0, 1, 1, 2, 2, 3};
    return through(c, type, range, c->plain ? 0 : depths[test_pick(c, 0, 6)]);
}

/* Results ---------------------------------------------------------------------------------------- */

static void add_result(test_case *c, sf_value value, test_tolerance tolerance)
{
    assert_true(c->nresults < TEST_MOST_RESULTS);
    c->tolerances[c->nresults] = tolerance;
    c->results[c->nresults++] = value;
}

static sf_value cut(test_case *c, sf_value value)
{
    const sf_type *type = sf_type_of(c->graph, value);
    int64_t starts[SF_MAX_RANK], limits[SF_MAX_RANK], strides[SF_MAX_RANK];
    for (int d = 0; d < type->rank; d++) {
        starts[d] = test_pick(c, 0, type->dims[d] < 2 ? type->dims[d] : 2);
        limits[d] = test_chance(c, 50) ? type->dims[d] : test_pick(c, starts[d], type->dims[d]);
        strides[d] = test_pick(c, 1, 2);
    }
    test_spec s = {.op = SF_OP_SLICE, .noperands = 1, .nresults = 1, .operands = {value}};
    test_set_ints(c, &s, "start_indices", type->rank, starts);
    test_set_ints(c, &s, "limit_indices", type->rank, limits);
    test_set_ints(c, &s, "strides", type->rank, strides);
    return test_add(c, &s)->result;
}

static sf_value turned(test_case *c, sf_value value)
{
    const sf_type *type = sf_type_of(c->graph, value);
    int64_t order[SF_MAX_RANK];
    for (int d = 0; d < type->rank; d++)
        order[d] = d;
    test_shuffle(c, type->rank, order);
    test_spec s = {.op = SF_OP_TRANSPOSE, .noperands = 1, .nresults = 1, .operands = {value}};
    test_set_ints(c, &s, "permutation", type->rank, order);
    return test_add(c, &s)->result;
}

static sf_value spread(test_case *c, sf_value value)
{
    const sf_type *type = sf_type_of(c->graph, value);
    int64_t dims[SF_MAX_RANK], places[SF_MAX_RANK];
    int rank = 0, at = (int)test_pick(c, 0, type->rank);
    for (int d = 0; d <= type->rank; d++) {
        if (d == at)
            dims[rank++] = test_pick(c, 1, 3);
        if (d < type->rank) {
            places[d] = rank;
            dims[rank++] = type->dims[d];
        }
    }
    return test_broadcast(c, value, sf_type_get(c->pool, type->dtype, rank, dims), type->rank,
                          places);
}

/* The largest along some dimensions: the tolerance of the elements holds for it too. */
static sf_value largest(test_case *c, sf_value value)
{
    const sf_type *type = sf_type_of(c->graph, value);
    sf_block *outer = c->block, *body = test_open(c, 1, &type->dtype, true);
    sf_value result = test_binary(c, SF_OP_MAXIMUM, body->arguments[0], body->arguments[1]);
    test_close(c, body, outer, 1, &result);
    int64_t dims[SF_MAX_RANK];
    int count = 0;
    for (int d = 0; d < type->rank; d++)
        if (test_chance(c, 50))
            dims[count++] = d;
    sf_value low =
        test_constant(c, sf_type_scalar(c->pool, type->dtype), (test_range){false, 0, 0});
    test_spec s = {.op = SF_OP_REDUCE,
                   .noperands = 2,
                   .nresults = 1,
                   .nregions = 1,
                   .operands = {value, low},
                   .regions = {body}};
    test_set_ints(c, &s, "dimensions", count, dims);
    return test_add(c, &s)->result;
}

static sf_value onward(test_case *c, sf_value value)
{
    const sf_type *type = sf_type_of(c->graph, value);
    bool is_bool = type->dtype == SF_PRED, is_complex = sf_is_complex(type->dtype);
    switch (test_pick(c, 0, 7)) {
    case 0:
        return turned(c, value);
    case 1:
        return cut(c, value);
    case 2:
        return reversed(c, value);
    case 3:
        return spread(c, value);
    case 4:
        return reshape(c, value, reshaped(c, type));
    case 5: /* complex numbers have no largest; their parts are views */
        return is_complex ? test_unary(c, SF_OP_IMAG, value) : largest(c, value);
    case 6:
        if (is_complex)
            return test_unary(c, SF_OP_REAL, value);
        return test_binary(c, SF_OP_MAXIMUM, value, test_operand(c, type, test_small));
    default:
        return test_unary(c, is_bool ? SF_OP_NOT : SF_OP_NEGATE, value);
    }
}

static void use(test_case *c, sf_value value, test_tolerance tolerance)
{
    bool returned = c->plain || test_chance(c, 60);
    if (returned)
        add_result(c, value, tolerance);
    for (int uses = c->plain ? 0 : (int)test_pick(c, returned ? 0 : 1, 2); uses > 0; uses--) {
        sf_value end = value;
        for (int steps = (int)test_pick(c, 1, 3); steps > 0; steps--)
            end = onward(c, end);
        add_result(c, end, tolerance);
    }
}

void test_finish(test_case *c, const test_spec *spec, test_tolerance tolerance)
{
    c->node = test_add(c, spec);
    for (uint32_t i = 0; i < c->node->nresults; i++) {
        bool is_rounded = sf_is_inexact(sf_type_of(c->graph, c->node->result + i)->dtype);
        use(c, c->node->result + i, is_rounded ? tolerance : (test_tolerance){0, 0});
    }
}

/* Cases ------------------------------------------------------------------------------------------ */

bool test_can_draw(sf_opcode op)
{
    return test_generators[op] != NULL;
}

void test_case_draw(test_case *c, sf_opcode op, uint32_t seed, bool plain, int64_t most)
{
    static const int64_t sizes[] = {12, 60, 60, 300, 300, 2000, 2000, 12000};
    *c = (test_case){.random = {.key = seed}, .op = op, .plain = plain, .pool = sf_pool_new()};
    c->graph = sf_graph_new(c->pool);
    c->block = c->graph->top;
    c->most = most ? most : test_chance(c, 3) ? 150000 : sizes[test_pick(c, 0, 7)];
    test_generators[op](c);
    sf_block *top = c->graph->top;
    sf_block_return(c->graph, top, c->nresults, c->results);
    c->graph->name = "main";
    c->graph->arguments = SF_ARRAY(&c->graph->arena, top->narguments, sf_argument);
    c->graph->results = SF_ARRAY(&c->graph->arena, top->nresults, sf_result);
    for (uint32_t i = 0; i < top->narguments; i++) {
        char name[16];
        snprintf(name, sizeof name, "a%u", i);
        c->graph->arguments[i] = (sf_argument){.name = sf_pool_string(c->pool, sf_str_of(name)),
                                               .role = SF_ROLE_OTHER,
                                               .next = SF_NONE};
    }
    for (uint32_t i = 0; i < top->nresults; i++)
        c->graph->results[i].name = "";
}

void test_case_free(test_case *c)
{
    sf_graph_free(c->graph);
    sf_pool_release(c->pool);
}
