/* Generators of ops that combine elements: products, convolutions, reductions, windows, scatters. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/draw_kinds.h"

static const test_tolerance exact = {0, 0};

/* Of two factors and their product. */
static void product_types(test_case *c, sf_dtype *a, sf_dtype *b, sf_dtype *out)
{
    *a = *b = *out = test_any_dtype(c);
    if (test_chance(c, 15))
        *b = test_dtype(c, 1 << sf_dtype_get(*a)->class);
    if (test_chance(c, 20))
        *out = sf_is_complex(*a) ? SF_C64 : sf_is_float(*a) ? SF_F32 : SF_S32;
    if (sf_is_complex(*a) && test_chance(c, 15))
        *b = test_dtype(c, 1 << SF_FLOAT);
}

/* Of factors in [-2, 2]. */
static test_tolerance product_tolerance(sf_dtype a, sf_dtype b, sf_dtype out, double terms)
{
    if (!sf_is_float(out))
        return exact;
    /* Factors of 64 bits do not help a sum of 32. */
    (void)a, (void)b;
    return test_sum_tolerance(out, terms, 4);
}

/* A place for each of `count` things among the dimensions of a tensor. */
static void draw_places(test_case *c, int count, int64_t *places)
{
    for (int i = 0; i < count; i++)
        places[i] = i;
    if (test_chance(c, 60))
        test_shuffle(c, count, places);
}

void test_draw_dot_general(test_case *c)
{
    int batch = (int)test_pick(c, 0, 2), sum = (int)test_pick(c, 0, 2);
    int free_a = (int)test_pick(c, 0, 2), free_b = (int)test_pick(c, 0, 2);
    int64_t sizes[SF_MAX_RANK], a[SF_MAX_RANK], b[SF_MAX_RANK], at_a[SF_MAX_RANK],
        at_b[SF_MAX_RANK];
    int64_t most = c->most;
    c->most =
        (int64_t)fmin(pow((double)most, 1.5), 1e7); /* three sizes, of which two make a tensor */
    test_dims(c, batch + sum + free_a + free_b, sizes); /* batch, sum, free of a, free of b */
    c->most = most;
    draw_places(c, batch + sum + free_a, at_a);
    draw_places(c, batch + sum + free_b, at_b);
    for (int i = 0; i < batch + sum + free_a; i++)
        a[at_a[i]] = sizes[i];
    for (int i = 0; i < batch + sum + free_b; i++)
        b[at_b[i]] = sizes[i < batch + sum ? i : i + free_a];
    double terms = 1;
    for (int i = batch; i < batch + sum; i++)
        terms *= (double)sizes[i];
    sf_dtype types[3];
    product_types(c, &types[0], &types[1], &types[2]);
    /* Free dimensions keep their order, so the result follows. */
    int64_t out[SF_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < batch; i++)
        out[rank++] = sizes[i];
    for (int64_t d = 0; d < batch + sum + free_a; d++)
        for (int i = batch + sum; i < batch + sum + free_a; i++)
            if (at_a[i] == d)
                out[rank++] = a[d];
    for (int64_t d = 0; d < batch + sum + free_b; d++)
        for (int i = batch + sum; i < batch + sum + free_b; i++)
            if (at_b[i] == d)
                out[rank++] = b[d];
    test_spec s = {.op = c->op, .noperands = 2, .nresults = 1};
    s.operands[0] =
        test_operand(c, sf_type_get(c->pool, types[0], batch + sum + free_a, a), test_small);
    s.operands[1] =
        test_operand(c, sf_type_get(c->pool, types[1], batch + sum + free_b, b), test_small);
    s.types[0] = sf_type_get(c->pool, types[2], rank, out);
    test_set_ints(c, &s, "lhs_batching_dimensions", batch, at_a);
    test_set_ints(c, &s, "rhs_batching_dimensions", batch, at_b);
    test_set_ints(c, &s, "lhs_contracting_dimensions", sum, at_a + batch);
    test_set_ints(c, &s, "rhs_contracting_dimensions", sum, at_b + batch);
    test_finish(c, &s, product_tolerance(types[0], types[1], types[2], terms));
}

/* The windows of one dimension. */
typedef struct window {
    int64_t size, stride, low, high, base, dilation;
} window;

static int64_t windows_of(window w, int64_t size)
{
    int64_t spread = size == 0 ? 0 : (size - 1) * w.base + 1, padded = spread + w.low + w.high;
    int64_t reach = (w.size - 1) * w.dilation + 1;
    return padded <= 0 || reach > padded ? 0 : (padded - reach) / w.stride + 1;
}

static window draw_window(test_case *c, int64_t size)
{
    window w = {1, 1, 0, 0, 1, 1};
    w.size = test_chance(c, 15) && size > 0 ? size : test_pick(c, 1, size < 5 ? size + 1 : 5);
    w.stride = test_chance(c, 60) ? 1 : test_pick(c, 2, 4);
    w.base = test_chance(c, 85) ? 1 : test_pick(c, 2, 3);
    w.dilation = test_chance(c, 80) ? 1 : test_pick(c, 2, 3);
    if (test_chance(c, 60)) {
        w.low = test_pick(c, -2, w.size + 1);
        w.high = test_pick(c, -2, w.size + 1);
    }
    return w;
}

void test_draw_convolution(test_case *c)
{
    static const int ranks[] = {1, 1, 2, 2, 2, 3, 0};
    int space = ranks[test_pick(c, 0, 6)], rank = space + 2;
    int64_t most = c->most, groups = test_chance(c, 70) ? 1 : test_pick(c, 2, 4);
    bool of_batch = test_chance(c, 40), depthwise = test_chance(c, 40);
    int64_t feature_groups = of_batch ? 1 : groups, batch_groups = of_batch ? groups : 1;
    int64_t channels = depthwise ? 1 : test_pick(c, 1, most > 2000 ? 40 : 9);
    int64_t features = groups * test_pick(c, 1, most > 2000 ? 24 : 5);
    int64_t batch = batch_groups * test_pick(c, test_chance(c, 5) ? 0 : 1, 3);
    int64_t sizes[SF_MAX_RANK] = {0}, windows[SF_MAX_RANK], strides[SF_MAX_RANK],
            padding[2 * SF_MAX_RANK], base[SF_MAX_RANK], dilation[SF_MAX_RANK],
            reversal[SF_MAX_RANK], outs[SF_MAX_RANK];
    double terms = (double)channels;
    c->most = most / 20 + 4;
    test_dims(c, space, sizes);
    c->most = most;
    for (int i = 0; i < space; i++) {
        window w = draw_window(c, sizes[i]);
        windows[i] = w.size;
        strides[i] = w.stride;
        padding[2 * i] = w.low;
        padding[2 * i + 1] = w.high;
        base[i] = w.base;
        dilation[i] = w.dilation;
        reversal[i] = test_chance(c, 20);
        outs[i] = windows_of(w, sizes[i]);
        terms *= (double)w.size;
    }
    int64_t at[3][SF_MAX_RANK], dims[3][SF_MAX_RANK];
    for (int t = 0; t < 3; t++)
        draw_places(c, rank, at[t]); /* batch or input, feature or output, then space */
    dims[0][at[0][0]] = batch;
    dims[0][at[0][1]] = channels * feature_groups;
    dims[1][at[1][0]] = channels;
    dims[1][at[1][1]] = features;
    dims[2][at[2][0]] = batch / batch_groups;
    dims[2][at[2][1]] = features;
    for (int i = 0; i < space; i++) {
        dims[0][at[0][2 + i]] = sizes[i];
        dims[1][at[1][2 + i]] = windows[i];
        dims[2][at[2][2 + i]] = outs[i];
    }
    sf_dtype types[3];
    product_types(c, &types[0], &types[1], &types[2]);
    test_spec s = {.op = c->op, .noperands = 2, .nresults = 1};
    for (int t = 0; t < 2; t++)
        s.operands[t] = test_operand(c, sf_type_get(c->pool, types[t], rank, dims[t]), test_small);
    s.types[0] = sf_type_get(c->pool, types[2], rank, dims[2]);
    test_set_ints(c, &s, "window_strides", space, strides);
    test_set_ints(c, &s, "padding", 2 * space, padding);
    test_set_ints(c, &s, "lhs_dilation", space, base);
    test_set_ints(c, &s, "rhs_dilation", space, dilation);
    test_set_ints(c, &s, "window_reversal", space, reversal);
    test_set_int(c, &s, "input_batch_dimension", at[0][0]);
    test_set_int(c, &s, "input_feature_dimension", at[0][1]);
    test_set_ints(c, &s, "input_spatial_dimensions", space, at[0] + 2);
    test_set_int(c, &s, "kernel_input_feature_dimension", at[1][0]);
    test_set_int(c, &s, "kernel_output_feature_dimension", at[1][1]);
    test_set_ints(c, &s, "kernel_spatial_dimensions", space, at[1] + 2);
    test_set_int(c, &s, "output_batch_dimension", at[2][0]);
    test_set_int(c, &s, "output_feature_dimension", at[2][1]);
    test_set_ints(c, &s, "output_spatial_dimensions", space, at[2] + 2);
    test_set_int(c, &s, "feature_group_count", feature_groups);
    test_set_int(c, &s, "batch_group_count", batch_groups);
    test_finish(c, &s, product_tolerance(types[0], types[1], types[2], terms));
}

/* Bodies ----------------------------------------------------------------------------------------- */

/* A monoid that suits the type. */
static sf_opcode draw_monoid(test_case *c, sf_dtype dtype)
{
    static const sf_opcode ops[] = {SF_OP_ADD, SF_OP_ADD, SF_OP_MAXIMUM, SF_OP_MINIMUM,
                                    SF_OP_AND, SF_OP_OR,  SF_OP_XOR,     SF_OP_MULTIPLY};
    if (sf_is_complex(dtype))
        return ops[test_chance(c, 70) ? 0 : 7];
    return ops[test_pick(c, 0, sf_is_float(dtype) ? 3 : 7)];
}

static sf_block *monoid_body(test_case *c, sf_opcode op, sf_dtype dtype)
{
    sf_block *outer = c->block, *body = test_open(c, 1, &dtype, true);
    bool swap = test_chance(c, 20);
    sf_value result = test_binary(c, op, body->arguments[swap], body->arguments[!swap]);
    test_close(c, body, outer, 1, &result);
    return body;
}

/* Several results, or an op of two steps: nothing that is a known monoid. The order of the operands is
 * that of reductions: all that came before, then all that come now. */
static sf_block *strange_body(test_case *c, int count, const sf_dtype *dtypes)
{
    sf_block *outer = c->block, *body = sf_block_new(c->graph);
    for (int i = 0; i < 2 * count; i++)
        sf_block_argument(c->graph, body, sf_type_scalar(c->pool, dtypes[i % count]));
    c->block = body;
    sf_value results[4];
    sf_value wins = test_compare(c, "GT", NULL, body->arguments[0], body->arguments[count]);
    for (int i = 0; i < count; i++) {
        test_spec s = {.op = SF_OP_SELECT,
                       .noperands = 3,
                       .nresults = 1,
                       .operands = {wins, body->arguments[i], body->arguments[count + i]}};
        results[i] = test_add(c, &s)->result;
    }
    test_close(c, body, outer, (uint32_t)count, results);
    return body;
}

/* Numbers whose sums and extremes are compared. */
static test_range fold_range(test_case *c, sf_opcode op, sf_dtype dtype)
{
    bool sums = op == SF_OP_ADD || op == SF_OP_MULTIPLY;
    return sums && sf_is_inexact(dtype) ? test_small : test_chance(c, 40) ? test_wild : test_small;
}

static test_tolerance fold_tolerance(sf_opcode op, sf_dtype dtype, double terms)
{
    return op == SF_OP_ADD ? test_sum_tolerance(dtype, terms, 2) : exact;
}

/* The operands, initial values and body of a reduction of tensors of this shape. */
static test_tolerance fold(test_case *c, test_spec *s, const sf_type *type, double terms)
{
    bool is_ordered = !sf_is_complex(type->dtype);
    int count = is_ordered && test_chance(c, 20) ? (int)test_pick(c, 1, 3) : 0;
    sf_dtype dtypes[3] = {type->dtype};
    sf_opcode op = draw_monoid(c, type->dtype);
    test_range range = count ? test_small : fold_range(c, op, type->dtype);
    for (int i = 1; i < count; i++)
        dtypes[i] = test_any_dtype(c);
    /* Windows add a start that is not zero, once for each place of padding, to sums that were rounded:
     * in a narrow type that is no longer a rounded sum. */
    bool narrow = sf_is_float(type->dtype) && sf_dtype_get(type->dtype)->bits < 32;
    bool from_zero = narrow && op == SF_OP_ADD && !count && c->op == SF_OP_REDUCE_WINDOW;
    test_range start = from_zero ? (test_range){.low = 0, .high = 0} : range;
    s->nregions = 1;
    s->regions[0] = count ? strange_body(c, count, dtypes) : monoid_body(c, op, type->dtype);
    s->nresults = count ? (uint32_t)count : 1;
    s->noperands = 2 * s->nresults;
    for (uint32_t i = 0; i < s->nresults; i++) {
        const sf_type *own = sf_type_with(c->pool, type, dtypes[i]);
        s->operands[i] = test_operand(c, own, range);
        s->operands[s->nresults + i] = test_operand(c, sf_type_scalar(c->pool, dtypes[i]), start);
    }
    return count ? exact : fold_tolerance(op, type->dtype, terms);
}

void test_draw_reduce(test_case *c)
{
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 5);
    int64_t dims[SF_MAX_RANK];
    int count = 0;
    double terms = 1;
    for (int d = 0; d < type->rank; d++)
        if (test_chance(c, 50)) {
            dims[count++] = d;
            terms *= (double)type->dims[d];
        }
    if (test_chance(c, 30))
        test_shuffle(c, count, dims);
    test_spec s = {.op = c->op};
    test_tolerance tolerance = fold(c, &s, type, terms + 1);
    test_set_ints(c, &s, "dimensions", count, dims);
    test_finish(c, &s, tolerance);
}

void test_draw_reduce_window(test_case *c)
{
    int64_t most = c->most;
    c->most = most / 8 + 4;
    const sf_type *type = test_type(c, test_any_dtype(c), 0, 4);
    c->most = most;
    int64_t sizes[SF_MAX_RANK], strides[SF_MAX_RANK], padding[2 * SF_MAX_RANK], base[SF_MAX_RANK],
        dilation[SF_MAX_RANK];
    double terms = 1;
    bool runs = type->rank > 0 && test_chance(c, 20); /* a running sum */
    int64_t along = runs ? test_pick(c, 0, type->rank - 1) : -1;
    for (int d = 0; d < type->rank; d++) {
        window w = {1, 1, 0, 0, 1, 1};
        if (d == along && type->dims[d] > 0) {
            bool reverse = test_chance(c, 50);
            w.size = type->dims[d];
            w.low = reverse ? 0 : w.size - 1;
            w.high = reverse ? w.size - 1 : 0;
        } else if (!runs && test_chance(c, 70)) {
            w = draw_window(c, type->dims[d]);
        }
        sizes[d] = w.size;
        strides[d] = w.stride;
        padding[2 * d] = w.low;
        padding[2 * d + 1] = w.high;
        base[d] = w.base;
        dilation[d] = w.dilation;
        terms *= (double)w.size;
    }
    test_spec s = {.op = c->op};
    test_tolerance tolerance = fold(c, &s, type, terms + 1);
    test_set_ints(c, &s, "window_dimensions", type->rank, sizes);
    test_set_ints(c, &s, "window_strides", type->rank, strides);
    test_set_ints(c, &s, "padding", 2 * type->rank, padding);
    test_set_ints(c, &s, "base_dilations", type->rank, base);
    test_set_ints(c, &s, "window_dilations", type->rank, dilation);
    test_finish(c, &s, tolerance);
}

/* Every window holds at least one element: what one without would select is not defined. */
void test_draw_select_and_scatter(test_case *c)
{
    int64_t most = c->most;
    c->most = most / 4 + 4;
    const sf_type *type = test_type(c, test_ordered_dtype(c), 0, 4);
    c->most = most;
    int64_t dims[SF_MAX_RANK], sizes[SF_MAX_RANK], strides[SF_MAX_RANK], padding[2 * SF_MAX_RANK],
        counts[SF_MAX_RANK];
    double terms = 1;
    for (int d = 0; d < type->rank; d++) {
        dims[d] = type->dims[d] ? type->dims[d] : 1;
        window w = {
            test_chance(c, 40) ? 1 : test_pick(c, 1, dims[d] < 5 ? dims[d] : 5), 1, 0, 0, 1, 1};
        w.stride = test_pick(c, 1, w.size + 1);
        w.low = test_chance(c, 50) ? 0 : test_pick(c, 0, w.size - 1);
        w.high = test_chance(c, 50) ? 0 : test_pick(c, 0, w.size - 1);
        sizes[d] = w.size;
        strides[d] = w.stride;
        padding[2 * d] = w.low;
        padding[2 * d + 1] = w.high;
        counts[d] = windows_of(w, dims[d]);
        terms *= (double)w.size;
    }
    static const char *const directions[] = {"GE", "GT", "LE", "LT"};
    sf_dtype dtype = type->dtype;
    test_spec s = {.op = c->op, .noperands = 3, .nresults = 1, .nregions = 2};
    sf_block *outer = c->block, *select = test_open(c, 1, &dtype, true);
    sf_value chosen = test_compare(c, directions[test_pick(c, 0, 3)], NULL, select->arguments[0],
                                   select->arguments[1]);
    test_close(c, select, outer, 1, &chosen);
    sf_opcode op = draw_monoid(c, dtype);
    s.regions[0] = select;
    s.regions[1] = monoid_body(c, op, dtype);
    s.operands[0] = test_operand(c, sf_type_get(c->pool, dtype, type->rank, dims), test_small);
    s.operands[1] = test_operand(c, sf_type_get(c->pool, dtype, type->rank, counts), test_small);
    s.operands[2] = test_operand(c, sf_type_scalar(c->pool, dtype), test_small);
    test_set_ints(c, &s, "window_dimensions", type->rank, sizes);
    test_set_ints(c, &s, "window_strides", type->rank, strides);
    test_set_ints(c, &s, "padding", 2 * type->rank, padding);
    test_finish(c, &s, fold_tolerance(op, dtype, terms + 1));
}

void test_draw_gather(test_case *c)
{
    test_numbers n = test_draw_numbers(&c->random, c->pool, test_any_dtype(c));
    test_spec s = {.op = c->op, .noperands = 2, .nresults = 1};
    test_number_attrs(&n, c->pool, s.attrs);
    s.operands[0] = test_operand(c, n.operand, test_chance(c, 50) ? test_wild : test_small);
    s.operands[1] = test_operand(c, n.indices, (test_range){.low = -2, .high = 7});
    test_set_ints(c, &s, "slice_sizes", n.operand->rank, n.sizes);
    test_finish(c, &s, exact);
}

void test_draw_scatter(test_case *c)
{
    test_numbers n = test_draw_numbers(&c->random, c->pool, test_any_dtype(c));
    sf_dtype dtype = n.operand->dtype;
    int64_t kind = test_pick(c, 0, 9);
    test_spec s = {.op = c->op, .noperands = 3, .nresults = 1, .nregions = 1};
    test_number_attrs(&n, c->pool, s.attrs);
    test_tolerance tolerance = exact;
    test_range range = test_small;
    if (kind < 3) { /* the later one wins */
        sf_block *outer = c->block, *body = test_open(c, 1, &dtype, true);
        test_close(c, body, outer, 1, &body->arguments[1]);
        s.regions[0] = body;
        range = test_wild;
    } else if (kind < 8 || sf_is_complex(dtype)) {
        sf_opcode op = draw_monoid(c, dtype);
        s.regions[0] = monoid_body(c, op, dtype);
        range = fold_range(c, op, dtype);
        tolerance = fold_tolerance(op, dtype, (double)n.windowed->count + 1);
    } else {
        s.regions[0] = strange_body(c, 1, &dtype);
    }
    s.operands[0] = test_operand(c, n.operand, range);
    s.operands[1] = test_operand(c, n.indices, (test_range){.low = -2, .high = 7});
    s.operands[2] = test_operand(c, n.windowed, range);
    test_finish(c, &s, tolerance);
}
