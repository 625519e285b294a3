/* convolution against its literal definition: the input is dilated and padded, the kernel reversed
 * and dilated, groups are split and joined, each as a step of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/indexing.h"

enum { ROUNDS = 1500, MAX_SPATIAL = 3 };

/* An array of doubles; memory is from the arena. */
typedef struct array {
    int rank;
    int64_t dims[SF_MAX_RANK];
    double *at;
} array;

static int64_t count_of(const array *a)
{
    int64_t count = 1;
    for (int i = 0; i < a->rank; i++)
        count *= a->dims[i];
    return count;
}

static array new_array(sf_arena *arena, int rank, const int64_t *dims)
{
    array a = {.rank = rank};
    for (int i = 0; i < rank; i++)
        a.dims[i] = dims[i];
    a.at = SF_ARRAY(arena, count_of(&a), double);
    return a;
}

static double *element(const array *a, const int64_t *index)
{
    return a->at + sf_flat_index(a->rank, a->dims, index);
}

/* Dimension i of the result is dimension order[i] of the tensor. */
static array permuted(sf_arena *arena, const sf_tensor *tensor, const int64_t *order)
{
    int64_t dims[SF_MAX_RANK], index[SF_MAX_RANK] = {0}, from[SF_MAX_RANK];
    for (int i = 0; i < tensor->type->rank; i++)
        dims[i] = tensor->type->dims[order[i]];
    array a = new_array(arena, tensor->type->rank, dims);
    for (int64_t n = 0; n < count_of(&a); n++) {
        for (int i = 0; i < a.rank; i++)
            from[order[i]] = index[i];
        a.at[n] = sf_get_f64(tensor, sf_flat_index(a.rank, tensor->type->dims, from));
        sf_next_index(a.rank, a.dims, index);
    }
    return a;
}

static array padded(sf_arena *arena, array a, int dim, int64_t low, int64_t high, int64_t apart)
{
    int64_t dims[SF_MAX_RANK], index[SF_MAX_RANK] = {0};
    int64_t spread = a.dims[dim] == 0 ? 0 : (a.dims[dim] - 1) * apart + 1;
    for (int i = 0; i < a.rank; i++)
        dims[i] = a.dims[i];
    dims[dim] = low + spread + high < 0 ? 0 : low + spread + high;
    array out = new_array(arena, a.rank, dims);
    for (int64_t n = 0; n < count_of(&out); n++) {
        int64_t from[SF_MAX_RANK], place = index[dim] - low;
        for (int i = 0; i < a.rank; i++)
            from[i] = index[i];
        from[dim] = place / apart;
        if (place >= 0 && place < spread && place % apart == 0)
            out.at[n] = *element(&a, from);
        sf_next_index(out.rank, out.dims, index);
    }
    return out;
}

static array reversed(sf_arena *arena, array a, int dim)
{
    array out = new_array(arena, a.rank, a.dims);
    int64_t index[SF_MAX_RANK] = {0};
    for (int64_t n = 0; n < count_of(&a); n++) {
        index[dim] = a.dims[dim] - 1 - index[dim];
        out.at[n] = *element(&a, index);
        index[dim] = a.dims[dim] - 1 - index[dim];
        sf_next_index(a.rank, a.dims, index);
    }
    return out;
}

/* Part `which` of `parts` equal ones along a dimension: copied out, or with `back` copied in. */
static array part(sf_arena *arena, array a, int dim, int64_t which, int64_t parts,
                  const array *back)
{
    int64_t dims[SF_MAX_RANK], index[SF_MAX_RANK] = {0}, from[SF_MAX_RANK];
    for (int i = 0; i < a.rank; i++)
        dims[i] = a.dims[i];
    dims[dim] /= parts;
    array out = back ? *back : new_array(arena, a.rank, dims);
    for (int64_t n = 0; n < count_of(&out); n++) {
        for (int i = 0; i < a.rank; i++)
            from[i] = index[i];
        from[dim] += which * dims[dim];
        if (back)
            *element(&a, from) = out.at[n];
        else
            out.at[n] = *element(&a, from);
        sf_next_index(out.rank, out.dims, index);
    }
    return out;
}

/* lhs (batch, channel, space), rhs (channel, feature, space) to (batch, feature, space). */
static array plain(sf_arena *arena, array lhs, array rhs, const int64_t *strides)
{
    int rank = lhs.rank;
    int64_t dims[SF_MAX_RANK] = {lhs.dims[0], rhs.dims[1]}, index[SF_MAX_RANK] = {0};
    for (int i = 2; i < rank; i++)
        dims[i] = lhs.dims[i] < rhs.dims[i] ? 0 : (lhs.dims[i] - rhs.dims[i]) / strides[i - 2] + 1;
    array out = new_array(arena, rank, dims);
    for (int64_t n = 0; n < count_of(&out); n++) {
        int64_t w[SF_MAX_RANK] = {0}, from[SF_MAX_RANK], at[SF_MAX_RANK];
        for (int64_t m = 0; m < count_of(&rhs) / rhs.dims[1]; m++) {
            /* w is (channel, 0, window position) */
            from[0] = index[0];
            from[1] = w[0];
            at[0] = w[0];
            at[1] = index[1];
            for (int i = 2; i < rank; i++) {
                from[i] = index[i] * strides[i - 2] + w[i];
                at[i] = w[i];
            }
            out.at[n] += *element(&lhs, from) * *element(&rhs, at);
            int64_t sizes[SF_MAX_RANK];
            for (int i = 0; i < rank; i++)
                sizes[i] = i == 1 ? 1 : rhs.dims[i];
            sf_next_index(rank, sizes, w);
        }
        sf_next_index(rank, dims, index);
    }
    return out;
}

typedef struct config {
    int spatial;
    int64_t lhs[SF_MAX_RANK], rhs[SF_MAX_RANK], out[SF_MAX_RANK]; /* batch, feature, space */
    int64_t strides[MAX_SPATIAL], padding[2 * MAX_SPATIAL], base[MAX_SPATIAL];
    int64_t dilation[MAX_SPATIAL], reversal[MAX_SPATIAL];
    int64_t feature_groups, batch_groups;
    const sf_type *lhs_type, *rhs_type;
} config;

static void draw_order(test_random *random, int count, int64_t *order)
{
    for (int i = 0; i < count; i++) {
        int64_t j = test_draw(random, 0, i);
        order[i] = order[j];
        order[j] = i;
    }
}

static config draw_config(test_random *random, sf_pool *pool, sf_dtype dtype)
{
    config c = {.spatial = (int)test_draw(random, 0, MAX_SPATIAL)};
    int rank = c.spatial + 2;
    int64_t groups = test_draw(random, 1, 3), kind = test_draw(random, 0, 2);
    c.feature_groups = kind == 1 ? groups : 1;
    c.batch_groups = kind == 2 ? groups : 1;
    int64_t channels = test_draw(random, 1, 3), features = test_draw(random, 1, 3);
    int64_t batch = test_draw(random, 0, 9) ? test_draw(random, 1, 2) : 0;
    draw_order(random, rank, c.lhs);
    draw_order(random, rank, c.rhs);
    draw_order(random, rank, c.out);
    int64_t lhs[SF_MAX_RANK], rhs[SF_MAX_RANK];
    lhs[c.lhs[0]] = batch * c.batch_groups;
    lhs[c.lhs[1]] = channels * c.feature_groups;
    rhs[c.rhs[0]] = channels;
    rhs[c.rhs[1]] = features * c.feature_groups * c.batch_groups;
    for (int i = 0; i < c.spatial; i++) {
        bool simple = test_draw(random, 0, 3) == 0;
        lhs[c.lhs[2 + i]] = test_draw(random, 0, 11) ? test_draw(random, 1, 6) : 0;
        rhs[c.rhs[2 + i]] = simple ? 1 : test_draw(random, 1, 3);
        c.strides[i] = simple ? 1 : test_draw(random, 1, 3);
        c.base[i] = simple ? 1 : test_draw(random, 1, 3);
        c.dilation[i] = simple ? 1 : test_draw(random, 1, 3);
        c.padding[2 * i] = simple ? 0 : test_draw(random, -2, 3);
        c.padding[2 * i + 1] = simple ? 0 : test_draw(random, -2, 3);
        c.reversal[i] = test_draw(random, 0, 1);
    }
    c.lhs_type = sf_type_get(pool, dtype, rank, lhs);
    c.rhs_type = sf_type_get(pool, dtype, rank, rhs);
    return c;
}

static void set(const sf_attr **attrs, const char *name, const sf_attr *attr)
{
    attrs[sf_attr_slot(sf_opdef_get(SF_OP_CONVOLUTION), sf_str_of(name))] = attr;
}

/* A list that says nothing is left out, as often as not. */
static void set_list(test_random *random, sf_pool *pool, const sf_attr **attrs, const char *name,
                     int count, const int64_t *values, int64_t nothing)
{
    bool says_nothing = true;
    for (int i = 0; i < count; i++)
        says_nothing = says_nothing && values[i] == nothing;
    if (!says_nothing || test_draw(random, 0, 1))
        set(attrs, name, sf_attr_ints(pool, count, values));
}

static void set_attrs(test_random *random, sf_pool *pool, const config *c, const sf_attr **attrs)
{
    static const char *const names[3][3] = {
        {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"},
        {"kernel_input_feature_dimension", "kernel_output_feature_dimension",
         "kernel_spatial_dimensions"},
        {"output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"}};
    const int64_t *orders[] = {c->lhs, c->rhs, c->out};
    for (int i = 0; i < 3; i++) {
        set(attrs, names[i][0], sf_attr_int(pool, orders[i][0]));
        set(attrs, names[i][1], sf_attr_int(pool, orders[i][1]));
        set(attrs, names[i][2], sf_attr_ints(pool, c->spatial, orders[i] + 2));
    }
    set_list(random, pool, attrs, "window_strides", c->spatial, c->strides, 1);
    set_list(random, pool, attrs, "padding", 2 * c->spatial, c->padding, 0);
    set_list(random, pool, attrs, "lhs_dilation", c->spatial, c->base, 1);
    set_list(random, pool, attrs, "rhs_dilation", c->spatial, c->dilation, 1);
    set_list(random, pool, attrs, "window_reversal", c->spatial, c->reversal, 0);
    set(attrs, "feature_group_count", sf_attr_int(pool, c->feature_groups));
    set(attrs, "batch_group_count", sf_attr_int(pool, c->batch_groups));
}

/* The convolution, laid out as (batch, feature, space). */
static array reference(sf_arena *arena, const config *c, const sf_tensor *in)
{
    array lhs = permuted(arena, &in[0], c->lhs), rhs = permuted(arena, &in[1], c->rhs);
    for (int i = 0; i < c->spatial; i++) {
        lhs = padded(arena, lhs, 2 + i, c->padding[2 * i], c->padding[2 * i + 1], c->base[i]);
        if (c->reversal[i])
            rhs = reversed(arena, rhs, 2 + i);
        rhs = padded(arena, rhs, 2 + i, 0, 0, c->dilation[i]);
    }
    int64_t groups = c->feature_groups * c->batch_groups;
    array whole = {0};
    for (int64_t g = 0; g < groups; g++) {
        int cut = c->feature_groups > 1 ? 1 : 0;
        array from = part(arena, lhs, cut, g, groups, NULL);
        array made = plain(arena, from, part(arena, rhs, 1, g, groups, NULL), c->strides);
        if (g == 0) {
            int64_t dims[SF_MAX_RANK];
            for (int i = 0; i < made.rank; i++)
                dims[i] = made.dims[i] * (i == 1 ? groups : 1);
            whole = new_array(arena, made.rank, dims);
        }
        part(arena, whole, 1, g, groups, &made);
    }
    return whole;
}

static void assert_same(sf_arena *arena, const config *c, const sf_tensor *in, const sf_tensor *out)
{
    array expected = reference(arena, c, in), actual = permuted(arena, out, c->out);
    for (int i = 0; i < expected.rank; i++)
        assert_int_equal(actual.dims[i], expected.dims[i]);
    for (int64_t i = 0; i < count_of(&expected); i++)
        assert_true(actual.at[i] == expected.at[i]);
}

static sf_op conv_op(const sf_type *const *types, const sf_attr *const *attrs, sf_pool *pool)
{
    return (sf_op){.def = sf_opdef_get(SF_OP_CONVOLUTION),
                   .noperands = 2,
                   .nresults = 1,
                   .in = types,
                   .attrs = attrs,
                   .pool = pool};
}

static void test_definition(void **state)
{
    (void)state;
    static const sf_dtype dtypes[] = {SF_F32, SF_S32, SF_F64, SF_S16};
    test_random random = {.key = 7};
    for (int round = 0; round < ROUNDS; round++) {
        sf_pool *pool = sf_pool_new();
        sf_arena arena = {0};
        config c = draw_config(&random, pool, dtypes[round % 4]);
        const sf_attr *attrs[32] = {0};
        set_attrs(&random, pool, &c, attrs);
        const sf_type *types[] = {c.lhs_type, c.rhs_type}, *result = NULL;
        sf_op op = conv_op(types, attrs, pool);
        assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
        op.out = &result;
        sf_tensor in[] = {test_draw_tensor(&random, &arena, c.lhs_type, -9, 9),
                          test_draw_tensor(&random, &arena, c.rhs_type, -9, 9)};
        sf_tensor out = {0};
        assert_int_equal(sf_eval_op(&op, in, &out, NULL), SF_OK);
        assert_same(&arena, &c, in, &out);
        test_split(&random, &op, in, &out);
        sf_free(out.data);
        sf_arena_free(&arena);
        sf_pool_release(pool);
    }
}

/* A convolution over 8 positions with a window of 3. */
static const sf_attr **small_conv(sf_pool *pool, const sf_type **types, const sf_attr **attrs)
{
    types[0] = sf_type_get(pool, SF_F32, 3, (int64_t[]){1, 8, 2});
    types[1] = sf_type_get(pool, SF_F32, 3, (int64_t[]){3, 2, 4});
    config c = {.spatial = 1,
                .lhs = {0, 2, 1},
                .rhs = {1, 2, 0},
                .out = {0, 2, 1},
                .strides = {1},
                .padding = {1, 1},
                .base = {1},
                .dilation = {1},
                .feature_groups = 1,
                .batch_groups = 1};
    test_random random = {.key = 1};
    set_attrs(&random, pool, &c, attrs);
    return attrs;
}

/* A shard of the input without the neighbours that the windows reach into. */
static void test_missing_halo(void **state)
{
    (void)state;
    sf_pool *pool = sf_pool_new();
    sf_arena arena = {0};
    const sf_attr *attrs[32] = {0};
    const sf_type *types[2], *result = NULL;
    sf_op op = conv_op(types, small_conv(pool, types, attrs), pool);
    assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
    op.out = &result;
    for (int64_t length = 4; length <= 5; length++) {
        const sf_type *piece = sf_type_get(pool, SF_F32, 3, (int64_t[]){1, length, 2});
        sf_span held[] = {sf_span_whole(1), sf_span_range(8, 0, length), sf_span_whole(2)};
        sf_span wanted[] = {sf_span_whole(1), sf_span_range(8, 0, 4), sf_span_whole(4)};
        sf_tensor in[] = {
            {.type = piece, .data = sf_arena_alloc(&arena, 40), .spans = held},
            {.type = types[1], .data = sf_arena_alloc(&arena, 96)},
        };
        sf_tensor out = {.type = sf_type_get(pool, SF_F32, 3, (int64_t[]){1, 4, 4}),
                         .spans = wanted};
        assert_int_equal(sf_eval_op(&op, in, &out, NULL), length == 5 ? SF_OK : SF_EINPUT);
        sf_free(out.data);
    }
    sf_arena_free(&arena);
    sf_pool_release(pool);
}

static void test_refuses(void **state)
{
    (void)state;
    sf_pool *pool = sf_pool_new();
    const int64_t huge = INT64_MAX, least = INT64_MIN;
    const struct {
        const char *name;
        const sf_attr *attr;
    } bad[] = {
        {"window_strides", sf_attr_ints(pool, 1, (int64_t[]){0})},
        {"window_strides", sf_attr_ints(pool, 2, (int64_t[]){1, 1})},
        {"window_strides", sf_attr_ints(pool, 1, &huge)},
        {"lhs_dilation", sf_attr_ints(pool, 1, &huge)},
        {"lhs_dilation", sf_attr_ints(pool, 1, (int64_t[]){-1})},
        {"rhs_dilation", sf_attr_ints(pool, 1, &huge)},
        {"padding", sf_attr_ints(pool, 1, (int64_t[]){0})},
        {"padding", sf_attr_ints(pool, 2, (int64_t[]){huge, huge})},
        {"padding", sf_attr_ints(pool, 2, (int64_t[]){least, 0})},
        {"window_reversal", sf_attr_ints(pool, 2, (int64_t[]){0, 0})},
        {"input_batch_dimension", sf_attr_int(pool, 1)},
        {"input_batch_dimension", sf_attr_int(pool, 3)},
        {"input_feature_dimension", NULL},
        {"kernel_spatial_dimensions", NULL},
        {"kernel_spatial_dimensions", sf_attr_ints(pool, 1, (int64_t[]){-1})},
        {"kernel_spatial_dimensions", sf_attr_ints(pool, 2, (int64_t[]){0, 1})},
        {"output_feature_dimension", sf_attr_int(pool, 0)},
        {"feature_group_count", sf_attr_int(pool, 0)},
        {"feature_group_count", sf_attr_int(pool, 2)},
        {"feature_group_count", sf_attr_int(pool, 3)},
        {"batch_group_count", sf_attr_int(pool, 2)},
        {"batch_group_count", sf_attr_int(pool, -1)},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const sf_attr *attrs[32] = {0};
        const sf_type *types[2], *result = NULL;
        sf_op op = conv_op(types, small_conv(pool, types, attrs), pool);
        assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
        set(attrs, bad[i].name, bad[i].attr);
        assert_int_equal(sf_infer(&op, &result, NULL), SF_EINPUT);
    }
    sf_pool_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_missing_halo),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
