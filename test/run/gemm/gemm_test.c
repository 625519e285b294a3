/* Matrix products against the oracle's dot_general: random shapes, strides, types and threads, with
 * every set of kernels. Most numbers are small integers, so sums are exact and results must be equal,
 * whatever the order; fractions are held to a bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/gemm/gemm.h"
#include "run/gemm/gemm_kernel.h"
#include "support/indexing.h"
#include "support/sanitized.h"

enum { ROUNDS = 1200, MOST_THREADS = 4 };

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

/* Strides for a (batches, rows, columns) array: some order of the dimensions, with gaps now and then,
 * or a dimension that is repeated. Returns how many elements it spans. */
static int64_t draw_strides(test_random *random, const int64_t *dims, bool repeats, sf_matrix *x)
{
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {2, 0, 1}, {1, 2, 0}};
    int64_t strides[3], next = 1;
    const int *order = orders[test_draw(random, 0, test_draw(random, 0, 2) ? 1 : 4)];
    if (test_draw(random, 0, 15) == 0)
        next = 3;
    for (int i = 2; i >= 0; i--) {
        strides[order[i]] = next;
        next *= dims[order[i]];
        if (test_draw(random, 0, 7) == 0)
            next += test_draw(random, 1, 5);
        if (repeats && test_draw(random, 0, 15) == 0)
            strides[order[i]] = 0;
    }
    x->batch = strides[0], x->row = strides[1], x->column = strides[2];
    return next + 8;
}

/* A whole tensor (batches, rows, columns), and the same numbers laid out by the strides. */
static sf_tensor draw_operand(test_random *random, sf_arena *arena, const sf_type *type,
                              sf_matrix *x)
{
    int64_t size = sf_dtype_get(type->dtype)->bytes, index[3] = {0};
    x->dtype = type->dtype;
    int64_t span = draw_strides(random, type->dims, true, x);
    sf_tensor packed = test_draw_tensor(random, arena, type, -5, 5);
    char *data = sf_arena_alloc(arena, (size_t)((span + 8) * size));
    x->data = data + (16 - (uintptr_t)data % 16) % 16 + (test_draw(random, 0, 3) ? 0 : size);
    for (int64_t i = 0; i < type->count; i++, sf_next_index(3, type->dims, index))
        sf_store_f64(x->dtype, x->data,
                     index[0] * x->batch + index[1] * x->row + index[2] * x->column,
                     sf_get_f64(&packed, i));
    memset(index, 0, sizeof index);
    for (int64_t i = 0; i < type->count; i++, sf_next_index(3, type->dims, index))
        sf_store_f64(x->dtype, packed.data, i,
                     sf_load_f64(x->dtype, x->data,
                                 index[0] * x->batch + index[1] * x->row + index[2] * x->column));
    return packed;
}

static int64_t draw_size(test_random *random, bool large)
{
    switch (test_draw(random, 0, 5)) {
    case 0:
        return 1;
    case 1:
        return test_draw(random, 0, 12);
    case 2:
        return large ? test_draw(random, 1, 8) * 32 : test_draw(random, 1, 4) * 8;
    default:
        return test_draw(random, 1, large ? 300 : 40);
    }
}

static sf_tensor oracle(sf_pool *pool, const sf_tensor *in, sf_dtype out_dtype)
{
    const sf_opdef *def = sf_opdef_get(SF_OP_DOT_GENERAL);
    const sf_attr *attrs[16] = {0};
    static const char *const names[] = {"lhs_batching_dimensions", "rhs_batching_dimensions",
                                        "lhs_contracting_dimensions", "rhs_contracting_dimensions"};
    static const int64_t dims[] = {0, 0, 2, 1};
    for (int i = 0; i < 4; i++)
        attrs[sf_attr_slot(def, sf_str_of(names[i]))] = sf_attr_ints(pool, 1, &dims[i]);
    const sf_type *types[] = {in[0].type, in[1].type};
    const sf_type *result =
        sf_type_get(pool, out_dtype, 3,
                    (int64_t[]){in[0].type->dims[0], in[0].type->dims[1], in[1].type->dims[2]});
    sf_op op = {.def = def,
                .noperands = 2,
                .nresults = 1,
                .in = types,
                .out = &result,
                .attrs = attrs,
                .pool = pool};
    sf_tensor out = {0};
    assert_int_equal(sf_eval_op(&op, in, &out, NULL), SF_OK);
    return out;
}

/* Elements of C are expected[i] (plus `before`, with accumulate), and gaps are untouched. */
static void assert_result(const sf_gemm *g, const sf_tensor *expected, double before, int64_t span)
{
    int64_t touched = 0, index[3] = {0};
    for (int64_t i = 0; i < expected->type->count; i++) {
        int64_t at = index[0] * g->c.batch + index[1] * g->c.row + index[2] * g->c.column;
        double want = sf_get_f64(expected, i) + (g->accumulate ? before : 0);
        assert_true(sf_load_f64(g->c.dtype, g->c.data, at) == sf_round(g->c.dtype, want));
        sf_store_f64(g->c.dtype, g->c.data, at, 1000);
        touched++;
        sf_next_index(3, expected->type->dims, index);
    }
    for (int64_t i = 0; i < span; i++) {
        double value = sf_load_f64(g->c.dtype, g->c.data, i);
        touched -= value == 1000;
        assert_true(value == 1000 || value == before);
    }
    assert_int_equal(touched, 0);
}

static void run_one(test_random *random, const sf_dtype *dtypes, bool large)
{
    sf_pool *pool = sf_pool_new();
    sf_arena arena = {0};
    sf_gemm g = {.batches = test_draw(random, 0, 9) ? test_draw(random, 1, large ? 2 : 9) : 0};
    g.m = draw_size(random, large), g.n = draw_size(random, large), g.k = draw_size(random, large);
    g.accumulate = test_draw(random, 0, 2) == 0;
    sf_tensor in[2];
    in[0] = draw_operand(random, &arena,
                         sf_type_get(pool, dtypes[0], 3, (int64_t[]){g.batches, g.m, g.k}), &g.a);
    in[1] = draw_operand(random, &arena,
                         sf_type_get(pool, dtypes[1], 3, (int64_t[]){g.batches, g.k, g.n}), &g.b);
    g.c.dtype = dtypes[2];
    int64_t span = draw_strides(random, (int64_t[]){g.batches, g.m, g.n}, false, &g.c);
    g.c.data = sf_arena_alloc(&arena, (size_t)(span * sf_dtype_get(dtypes[2])->bytes));
    /* The sums, exact: rounding is done once, after what C held is added. */
    sf_tensor expected = oracle(pool, in, SF_F64);
    for (int i = 0; i < MOST_THREADS; i++) {
        double before = 7;
        for (int64_t n = 0; n < span; n++)
            sf_store_f64(g.c.dtype, g.c.data, n, before);
        int64_t bytes = sf_gemm_scratch(&g, i + 1);
        char *scratch = sf_alloc((size_t)bytes + 64);
        memset(scratch, 0xff, (size_t)bytes + 64);
        g.scratch = bytes ? scratch : NULL;
        sf_gemm_run(&g, pools[i]);
        for (int n = 0; n < 64; n++)
            assert_int_equal((unsigned char)scratch[bytes + n], 0xff);
        sf_free(scratch);
        assert_result(&g, &expected, before, span);
    }
    sf_free(expected.data);
    sf_arena_free(&arena);
    sf_pool_release(pool);
}

static const sf_dtype triples[][3] = {
    {SF_F32, SF_F32, SF_F32}, {SF_F64, SF_F64, SF_F64}, {SF_BF16, SF_BF16, SF_BF16},
    {SF_F16, SF_F16, SF_F16}, {SF_F32, SF_F32, SF_F32}, {SF_BF16, SF_BF16, SF_F32},
    {SF_F16, SF_F16, SF_F32}, {SF_F32, SF_F32, SF_F32}, {SF_BF16, SF_F32, SF_F32},
};
enum { TRIPLES = sizeof triples / sizeof *triples };

static void test_random_products(void **state)
{
    (void)state;
    test_random random = {.key = 11};
    for (int round = 0; round < test_rounds(ROUNDS); round++) {
        const sf_dtype *t = triples[round % TRIPLES];
        assert_true(sf_gemm_can(t[0], t[1], t[2]));
        run_one(&random, t, round % 20 == 0);
    }
}

/* Calls check with every set of kernels that this processor can run. */
static void for_every_set(void (*check)(const sf_gemm_set *))
{
    const char *before = getenv("SHEAF_VEC");
    char *saved = before ? strdup(before) : NULL;
    const sf_gemm_set *set;
    for (int i = 0; (set = sf_gemm_set_nth(i)); i++) {
        setenv("SHEAF_VEC", sf_isa_name(set->isa), 1);
        assert_ptr_equal(sf_gemm_set_get(), set);
        check(set);
    }
    if (saved)
        setenv("SHEAF_VEC", saved, 1);
    else
        unsetenv("SHEAF_VEC");
    free(saved);
}

static void check_products(const sf_gemm_set *set)
{
    (void)set;
    test_random random = {.key = 12};
    for (int round = 0; round < test_rounds(ROUNDS / 4); round++)
        run_one(&random, triples[round % TRIPLES], round % 20 == 0);
}

static void test_every_set(void **state)
{
    (void)state;
    for_every_set(check_products);
}

/* count numbers of either sign between 1/16 and 16, with as many digits as the type has. */
static void *draw_fractions(test_random *random, sf_arena *arena, sf_dtype dtype, int64_t count)
{
    void *data = sf_arena_alloc(arena, (size_t)(count * sf_dtype_get(dtype)->bytes));
    for (int64_t i = 0; i < count; i++) {
        double x = ldexp((double)test_draw(random, 1 << 24, 1 << 25), -24);
        x = ldexp(x, (int)test_draw(random, -4, 3));
        sf_store_f64(dtype, data, i, test_draw(random, 0, 1) ? x : -x);
    }
    return data;
}

/* A sum of k products, in any order, is off by less than k + 1 units in the last place (half units,
 * where all is rounded to nearest; BFMMLA does not) of what it would be without signs; then comes the
 * type of C. */
static void assert_near(const sf_gemm *g, int64_t b, int64_t i, int64_t j, double before)
{
    double sum = 0, magnitude = fabs(before);
    for (int64_t p = 0; p < g->k; p++) {
        double x =
            sf_load_f64(g->a.dtype, g->a.data, b * g->a.batch + i * g->a.row + p * g->a.column);
        double y =
            sf_load_f64(g->b.dtype, g->b.data, b * g->b.batch + p * g->b.row + j * g->b.column);
        sum += x * y;
        magnitude += fabs(x * y);
    }
    double want = sum + (g->accumulate ? before : 0);
    double got =
        sf_load_f64(g->c.dtype, g->c.data, b * g->c.batch + i * g->c.row + j * g->c.column);
    double bound = ldexp((double)(g->k + 2) * magnitude, g->a.dtype == SF_F64 ? -52 : -23);
    int digits = g->c.dtype == SF_BF16 ? 8 : g->c.dtype == SF_F16 ? 11 : 0;
    if (digits)
        bound += ldexp(fabs(want) + bound, -digits);
    if (!(fabs(got - want) <= bound))
        fail_msg("%s, k %d: %.9g is not %.9g +- %.2g", sf_dtype_get(g->a.dtype)->name, (int)g->k,
                 got, want, bound);
}

static void run_fractions(test_random *random, const sf_dtype *dtypes, bool large)
{
    sf_arena arena = {0};
    sf_gemm g = {.batches = test_draw(random, 1, 2), .accumulate = test_draw(random, 0, 1)};
    g.m = draw_size(random, false), g.n = draw_size(random, false), g.k = draw_size(random, large);
    g.k *= large ? 8 : 1;
    g.a.dtype = dtypes[0], g.b.dtype = dtypes[1], g.c.dtype = dtypes[2];
    int64_t a = draw_strides(random, (int64_t[]){g.batches, g.m, g.k}, true, &g.a);
    int64_t b = draw_strides(random, (int64_t[]){g.batches, g.k, g.n}, true, &g.b);
    int64_t c = draw_strides(random, (int64_t[]){g.batches, g.m, g.n}, false, &g.c);
    g.a.data = draw_fractions(random, &arena, dtypes[0], a);
    g.b.data = draw_fractions(random, &arena, dtypes[1], b);
    char *first = draw_fractions(random, &arena, dtypes[2], c), *before = first;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        size_t bytes = (size_t)(c * sf_dtype_get(dtypes[2])->bytes);
        g.c.data = memcpy(sf_arena_alloc(&arena, bytes), before, bytes);
        g.scratch = sf_alloc((size_t)sf_gemm_scratch(&g, threads));
        sf_gemm_run(&g, pools[threads - 1]);
        sf_free(g.scratch);
        if (threads > 1)
            assert_memory_equal(g.c.data, first, bytes); /* whatever the number of threads */
        else
            first = g.c.data;
    }
    int64_t dims[3] = {g.batches, g.m, g.n}, index[3] = {0};
    for (int64_t n = 0; n < g.batches * g.m * g.n; n++, sf_next_index(3, dims, index))
        assert_near(&g, index[0], index[1], index[2],
                    sf_load_f64(dtypes[2], before,
                                index[0] * g.c.batch + index[1] * g.c.row + index[2] * g.c.column));
    sf_arena_free(&arena);
}

static void check_fractions(const sf_gemm_set *set)
{
    (void)set;
    test_random random = {.key = 13};
    for (int round = 0; round < test_rounds(ROUNDS / 4); round++)
        run_fractions(&random, triples[round % TRIPLES], round % 20 == 0);
}

static void test_fractions(void **state)
{
    (void)state;
    for_every_set(check_fractions);
}

/* Threads that are not ours, each with its own product. */
enum { ALONE = 70 };

static void *run_alone(void *argument)
{
    sf_threads *pool = sf_threads_new(1);
    for (int i = 0; i < 50; i++)
        sf_gemm_run(argument, pool);
    sf_threads_free(pool);
    return NULL;
}

static void test_other_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    sf_gemm g[4];
    sf_arena arena = {0};
    test_random random = {.key = 14};
    for (int i = 0; i < 4; i++) {
        g[i] = (sf_gemm){.batches = 1, .m = ALONE, .n = ALONE, .k = ALONE};
        g[i].a = g[i].b = (sf_matrix){NULL, SF_BF16, 0, ALONE, 1};
        g[i].a.data = draw_fractions(&random, &arena, SF_BF16, ALONE * ALONE);
        g[i].b.data = draw_fractions(&random, &arena, SF_BF16, ALONE * ALONE);
        g[i].c = (sf_matrix){sf_arena_alloc(&arena, ALONE * ALONE * 4), SF_F32, 0, ALONE, 1};
        g[i].scratch = sf_alloc((size_t)sf_gemm_scratch(&g[i], 1));
        assert_int_equal(pthread_create(&threads[i], NULL, run_alone, &g[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        for (int64_t n = 0; n < ALONE * ALONE; n++)
            assert_near(&g[i], 0, n / ALONE, n % ALONE, 0);
        sf_free(g[i].scratch);
    }
    sf_arena_free(&arena);
}

static void test_can(void **state)
{
    (void)state;
    assert_false(sf_gemm_can(SF_F64, SF_F32, SF_F64));
    assert_false(sf_gemm_can(SF_F32, SF_F32, SF_F64));
    assert_false(sf_gemm_can(SF_S32, SF_S32, SF_S32));
    assert_false(sf_gemm_can(SF_F8E5M2, SF_F8E5M2, SF_F32));
    assert_true(strlen(sf_gemm_library()) > 0);
}

/* Infinity, NaN, subnormal numbers and rounding of 16-bit floats, by a product with 1. Processors'
 * own products of bf16 take what is not normal for zero. */
static void check_16_bits(const sf_gemm_set *set)
{
    static const sf_dtype dtypes[] = {SF_BF16, SF_F16};
    uint16_t *all = sf_alloc(65536 * 2), *back = sf_alloc(65536 * 2);
    for (int t = 0; t < 2; t++) {
        uint16_t one;
        sf_store_f64(dtypes[t], &one, 0, 1);
        for (uint32_t i = 0; i < 65536; i++)
            all[i] = (uint16_t)i;
        /* Row i of C = 1 * row of B: one product per row. */
        sf_gemm g = {.batches = 256, .m = 1, .n = 256, .k = 1};
        g.a = (sf_matrix){&one, dtypes[t], 0, 0, 0};
        g.b = (sf_matrix){all, dtypes[t], 256, 0, 1};
        g.c = (sf_matrix){back, dtypes[t], 256, 256, 1};
        g.scratch = sf_alloc((size_t)sf_gemm_scratch(&g, 1));
        sf_gemm_run(&g, pools[0]);
        sf_free(g.scratch);
        bool flushes = dtypes[t] == SF_BF16 && set->bf16;
        for (uint32_t i = 0; i < 65536; i++) {
            double want = sf_load_f64(dtypes[t], all, i), got = sf_load_f64(dtypes[t], back, i);
            if (flushes && fabs(want) < 0x1p-126)
                want = 0;
            assert_true(want != want ? got != got : want == got);
        }
    }
    sf_free(all);
    sf_free(back);
}

static void test_16_bits(void **state)
{
    (void)state;
    for_every_set(check_16_bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_products),
        cmocka_unit_test(test_every_set),
        cmocka_unit_test(test_fractions),
        cmocka_unit_test(test_other_threads),
        cmocka_unit_test(test_can),
        cmocka_unit_test(test_16_bits),
    };
    return cmocka_run_group_tests(tests, open_pools, close_pools);
}
