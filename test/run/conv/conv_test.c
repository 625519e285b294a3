/* Convolutions against the oracle: random dimension numbers, windows, groups, layouts, types and
 * threads. All numbers are small integers, so sums are exact and results must be equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/conv/conv.h"
#include "run/gemm/gemm_kernel.h"
#include "support/indexing.h"

enum { ROUNDS = 3000, MAX_SPATIAL = 3, MOST_THREADS = 4 };

static sf_threads *pools[MOST_THREADS];

static int open_pools(void **state)
{
    (void)state;
    for (int i = 0; i < MOST_THREADS; i++)
        pools[i] = sf_threads_new(i + 1);
    return 0;
}

static int close_pools(void **state)
{
    (void)state;
    for (int i = 0; i < MOST_THREADS; i++)
        sf_threads_free(pools[i]);
    return 0;
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

/* What is drawn: anything small, anything larger, many groups of few features, and many groups with windows
 * as large as an image, as in the gradient of a kernel. */
typedef enum extent { SMALL, LARGE, GROUPED, LONG } extent;

/* Features last, as often as not. */
static void draw_layout(test_random *random, int rank, int last, int64_t *order)
{
    draw_order(random, rank, order);
    for (int i = 0; test_draw(random, 0, 1) && i < rank; i++)
        if (order[i] == rank - 1) {
            order[i] = order[last];
            order[last] = rank - 1;
        }
}

static config draw_config(test_random *random, sf_pool *pool, sf_dtype dtype, extent how)
{
    bool large = how == LARGE, grouped = how == GROUPED || how == LONG;
    config c = {.spatial = (int)test_draw(random, grouped, grouped ? 2 : MAX_SPATIAL)};
    int rank = c.spatial + 2;
    int64_t groups = grouped ? test_draw(random, 8, 90) : test_draw(random, 1, 3);
    int64_t kind = how == LONG ? 2 : test_draw(random, grouped, 2);
    c.feature_groups = kind == 1 ? groups : 1;
    c.batch_groups = kind == 2 ? groups : 1;
    int64_t most = large ? 40 : 4;
    int64_t channels = test_draw(random, 1, grouped ? 2 : most);
    int64_t features = test_draw(random, 1, grouped ? 2 : most);
    int64_t batch = test_draw(random, 0, 9) ? test_draw(random, 1, large ? 6 : 3) : 0;
    draw_layout(random, rank, kind == 2 ? 0 : 1, c.lhs);
    draw_layout(random, rank, 1, c.rhs);
    draw_layout(random, rank, 1, c.out);
    if (how == GROUPED && test_draw(random, 0, 1)) {
        features = 4 * test_draw(random, 1, 8);
        channels = test_draw(random, 1, 9);
        groups = test_draw(random, 2, 5);
        c.feature_groups = kind == 1 ? groups : 1;
        c.batch_groups = kind == 2 ? groups : 1;
    }
    if (how == LONG) {
        channels = test_draw(random, 1, 6);
        batch = batch > 0;
    }
    int64_t lhs[SF_MAX_RANK], rhs[SF_MAX_RANK];
    lhs[c.lhs[0]] = batch * c.batch_groups;
    lhs[c.lhs[1]] = channels * c.feature_groups;
    rhs[c.rhs[0]] = channels;
    rhs[c.rhs[1]] = features * c.feature_groups * c.batch_groups;
    for (int i = 0; i < c.spatial; i++) {
        bool simple = test_draw(random, 0, 3) == 0;
        lhs[c.lhs[2 + i]] = test_draw(random, 0, 11) ? test_draw(random, 1, large ? 9 : 6) : 0;
        rhs[c.rhs[2 + i]] = simple ? 1 : test_draw(random, 1, 3);
        c.strides[i] = simple ? 1 : test_draw(random, 1, 3);
        c.base[i] = simple ? 1 : test_draw(random, 1, 3);
        c.dilation[i] = simple ? 1 : test_draw(random, 1, 3);
        c.padding[2 * i] = simple ? 0 : test_draw(random, -2, 3);
        c.padding[2 * i + 1] = simple ? 0 : test_draw(random, -2, 3);
        c.reversal[i] = test_draw(random, 0, 1);
        if (how == GROUPED && i == 0)
            lhs[c.lhs[2]] = test_draw(random, 1, 40);
        if (how == LONG && c.base[i] == 1) {
            lhs[c.lhs[2 + i]] = test_draw(random, 14, 20);
            rhs[c.rhs[2 + i]] = test_draw(random, 12, 15);
            c.dilation[i] = 1;
        }
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

static sf_op conv_op(const sf_type *const *types, const sf_attr *const *attrs, sf_pool *pool)
{
    return (sf_op){.def = sf_opdef_get(SF_OP_CONVOLUTION),
                   .noperands = 2,
                   .nresults = 1,
                   .in = types,
                   .attrs = attrs,
                   .pool = pool};
}

/* The strides of a tensor, in elements; with a gap after each row of the last dimension. */
static void strides_of(const sf_type *type, int64_t gap, int64_t *strides)
{
    int64_t next = 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        strides[i] = next;
        next *= type->dims[i] + (i == type->rank - 1 ? gap : 0);
    }
}

/* A copy of the tensor's elements with a gap after each row. */
static void *spread(sf_arena *arena, const sf_tensor *tensor, int64_t gap)
{
    const sf_type *type = tensor->type;
    int64_t size = sf_dtype_get(type->dtype)->bytes;
    int64_t last = type->rank ? type->dims[type->rank - 1] : 1;
    int64_t rows = last ? type->count / last : 0;
    char *to = sf_arena_alloc(arena, (size_t)((rows * (last + gap) + 1) * size));
    for (int64_t i = 0; i < rows && tensor->data; i++)
        memcpy(to + i * (last + gap) * size, (char *)tensor->data + i * last * size,
               (size_t)(last * size));
    return to;
}

static sf_conv decode(const config *c, const sf_tensor *in, const sf_type *result, int64_t gap)
{
    int64_t lhs[SF_MAX_RANK], rhs[SF_MAX_RANK], out[SF_MAX_RANK];
    strides_of(in[0].type, gap, lhs);
    strides_of(in[1].type, gap, rhs);
    strides_of(result, gap, out);
    sf_conv conv = {.spatial = c->spatial,
                    .batch = result->dims[c->out[0]],
                    .channels = in[1].type->dims[c->rhs[0]],
                    .features = result->dims[c->out[1]],
                    .feature_groups = c->feature_groups,
                    .batch_groups = c->batch_groups,
                    .lhs_dtype = in[0].type->dtype,
                    .rhs_dtype = in[1].type->dtype,
                    .out_dtype = result->dtype,
                    .lhs_batch = lhs[c->lhs[0]],
                    .lhs_feature = lhs[c->lhs[1]],
                    .rhs_input = rhs[c->rhs[0]],
                    .rhs_output = rhs[c->rhs[1]],
                    .out_batch = out[c->out[0]],
                    .out_feature = out[c->out[1]]};
    for (int i = 0; i < c->spatial; i++)
        conv.space[i] = (sf_conv_dim){.lhs = in[0].type->dims[c->lhs[2 + i]],
                                      .window = in[1].type->dims[c->rhs[2 + i]],
                                      .out = result->dims[c->out[2 + i]],
                                      .stride = c->strides[i],
                                      .low = c->padding[2 * i],
                                      .base = c->base[i],
                                      .dilation = c->dilation[i],
                                      .reversed = c->reversal[i],
                                      .lhs_stride = lhs[c->lhs[2 + i]],
                                      .rhs_stride = rhs[c->rhs[2 + i]],
                                      .out_stride = out[c->out[2 + i]]};
    return conv;
}

static void assert_same(const sf_conv_job *conv, const sf_tensor *expected, int64_t gap)
{
    const sf_type *type = expected->type;
    int64_t last = type->dims[type->rank - 1];
    for (int64_t i = 0; i < type->count; i++)
        assert_true(sf_load_f64(type->dtype, conv->out, i + i / last * gap) ==
                    sf_get_f64(expected, i));
    for (int64_t row = 0; last && row < type->count / last; row++)
        for (int64_t i = 0; i < gap; i++)
            assert_true(sf_load_f64(type->dtype, conv->out, row * (last + gap) + last + i) == 0);
}

static void run_one(test_random *random, sf_dtype dtype, extent how)
{
    sf_pool *pool = sf_pool_new();
    sf_arena arena = {0};
    config c = draw_config(random, pool, dtype, how);
    const sf_attr *attrs[32] = {0};
    set_attrs(random, pool, &c, attrs);
    const sf_type *types[] = {c.lhs_type, c.rhs_type}, *result = NULL;
    sf_op op = conv_op(types, attrs, pool);
    assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
    op.out = &result;
    sf_tensor in[] = {test_draw_tensor(random, &arena, c.lhs_type, -5, 5),
                      test_draw_tensor(random, &arena, c.rhs_type, -5, 5)};
    sf_tensor out = {0};
    assert_int_equal(sf_eval_op(&op, in, &out, NULL), SF_OK);
    int64_t gap = test_draw(random, 0, 3) ? 0 : 2;
    sf_conv_job conv = {.g = decode(&c, in, result, gap)};
    conv.lhs = spread(&arena, &in[0], gap);
    conv.rhs = spread(&arena, &in[1], gap);
    for (int i = 0; i < MOST_THREADS; i++) {
        int64_t bytes = sf_conv_scratch(&conv, i + 1);
        char *scratch = sf_alloc((size_t)bytes + 64);
        memset(scratch, 0xff, (size_t)bytes + 64);
        conv.scratch = bytes ? scratch : NULL;
        conv.out = spread(&arena, &(sf_tensor){.type = result}, gap);
        sf_conv_run(&conv, pools[i]);
        for (int n = 0; n < 64; n++)
            assert_int_equal((unsigned char)scratch[bytes + n], 0xff);
        sf_free(scratch);
        assert_same(&conv, &out, gap);
    }
    sf_free(out.data);
    sf_arena_free(&arena);
    sf_pool_release(pool);
}

static void run_many(int rounds)
{
    static const sf_dtype dtypes[] = {SF_F32, SF_F64, SF_BF16, SF_F32, SF_F16};
    test_random random = {.key = 21};
    for (int round = 0; round < rounds; round++)
        run_one(&random, dtypes[round % 5], round % 30 == 0 ? LARGE : SMALL);
}

static void test_random_convolutions(void **state)
{
    (void)state;
    run_many(ROUNDS);
}

/* The same with the other sets of kernels that this processor can run. */
static void test_every_set(void **state)
{
    (void)state;
    const char *before = getenv("SHEAF_VEC");
    char *saved = before ? strdup(before) : NULL;
    const sf_gemm_set *set;
    for (int i = 1; (set = sf_gemm_set_nth(i)); i++) {
        setenv("SHEAF_VEC", sf_isa_name(set->isa), 1);
        run_many(ROUNDS / 4);
    }
    if (saved)
        setenv("SHEAF_VEC", saved, 1);
    else
        unsetenv("SHEAF_VEC");
    free(saved);
}

static void test_many_groups(void **state)
{
    (void)state;
    static const sf_dtype dtypes[] = {SF_F32, SF_F64, SF_BF16, SF_F32, SF_F16};
    test_random random = {.key = 22};
    for (int round = 0; round < ROUNDS / 4; round++)
        run_one(&random, dtypes[round % 5], round % 8 == 0 ? LONG : GROUPED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_convolutions),
        cmocka_unit_test(test_every_set),
        cmocka_unit_test(test_many_groups),
    };
    return cmocka_run_group_tests(tests, open_pools, close_pools);
}
