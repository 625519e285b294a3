/* Products with epilogues on the CPU engine against the oracle: sizes below, at and above those of
 * blocks and tiles, all kinds of epilogues, several types, and the same bits for any number of
 * threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "op/op.h"
#include "run/gemm/gemm_kernel.h"
#include "support/products.h"
#include "support/run.h"
#include "support/sanitized.h"

static void fill(sf_tensor tensor, uint64_t seed)
{
    for (int64_t i = 0; i < tensor.type->count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        sf_store_f64(tensor.type->dtype, tensor.data, i, (double)(seed >> 40) / 8388608.0 - 1.0);
    }
}

static void check_close(const char *text, sf_tensor a, sf_tensor b, int64_t k)
{
    double tolerance = b.type->dtype == SF_F64 ? 1e-12 : b.type->dtype == SF_F32 ? 4e-6 : 2e-2;
    double scale = 1;
    for (int64_t i = 0; i < b.type->count; i++)
        scale = fmax(scale, fabs(sf_get_f64(&b, i)));
    tolerance *= scale * sqrt((double)k + 1);
    for (int64_t i = 0; i < b.type->count; i++)
        if (!(fabs(sf_get_f64(&a, i) - sf_get_f64(&b, i)) <= tolerance))
            fail_msg("%s\nelement %d is %.9g, expected %.9g", text, (int)i, sf_get_f64(&a, i),
                     sf_get_f64(&b, i));
}

static sf_runner run_step(const sf_graph *graph, const char *engine, int threads)
{
    sf_runner runner = test_open_engine(graph, engine, threads, NULL);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        fill(test_argument(runner.engine, i), i + 1);
    assert_int_equal(sf_engine_step(runner.engine, NULL), SF_OK);
    return runner;
}

static void check(const product_case *c, product_size size, const char *dtype)
{
    static char text[8192];
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    sf_load_options load = {.size = sizeof load, .unroll = -1};
    product_text(c, size, dtype, text, sizeof text);
    if (sf_load_text(text, strlen(text), "step", &load, diag, &graph) != SF_OK)
        fail_msg("%s\n%s", text, sf_diag_text(diag, 0));
    sf_runner oracle = run_step(graph, "oracle", 1), one = run_step(graph, "cpu", 1);
    for (int threads = 1; threads <= 3; threads++) {
        sf_runner ours = run_step(graph, "cpu", threads);
        for (uint32_t i = 0; i < graph->top->nresults; i++) {
            sf_tensor a = test_result(ours.engine, i), b = test_result(one.engine, i);
            check_close(text, a, test_result(oracle.engine, i), 9 * size.k);
            if (!c->has_sums)
                assert_memory_equal(a.data, b.data, (size_t)sf_type_bytes(a.type));
        }
        sf_runner_close(&ours);
    }
    sf_runner_close(&one);
    sf_runner_close(&oracle);
    sf_graph_free(graph);
    sf_diag_free(diag);
}

static bool is_convolution(const product_case *c)
{
    return strstr(c->text, "stablehlo.convolution") != NULL;
}

static void test_dots(void **state)
{
    (void)state;
    static const product_size sizes[] = {
        {1, 1, 1, 1},      {1, 1, 37, 5},   {2, 3, 32, 4},    {1, 64, 64, 64},   {3, 37, 53, 29},
        {1, 200, 8, 9},    {7, 1, 40, 12},  {5, 13, 33, 300}, {1, 210, 100, 70}, {2, 9, 1, 6},
        {1, 40, 1, 10},    {1, 0, 40, 4},   {2, 3, 0, 4},     {0, 3, 40, 5},     {1, 4, 40, 0},
        {1, 3, 2100, 5},   {1, 2, 9000, 3}, {40, 12, 36, 12}, {2, 5, 48, 1},     {6, 50, 64, 16},
        {1, 264, 960, 40}, {300, 1, 64, 8},
    };
    for (size_t i = 0; i < product_case_count; i++)
        for (size_t j = 0; !is_convolution(&product_cases[i]) && j < sizeof sizes / sizeof *sizes;
             j++)
            check(&product_cases[i], sizes[j], "f32");
}

/* Sums over rows, of blocks as wide as the tiles of every set of kernels that this processor can
 * run. */
static void test_every_set(void **state)
{
    (void)state;
    const char *before = getenv("SHEAF_VEC");
    char *saved = before ? strdup(before) : NULL;
    const sf_gemm_set *set;
    for (int s = 0; (set = sf_gemm_set_nth(s)); s++) {
        setenv("SHEAF_VEC", sf_isa_name(set->isa), 1);
        for (size_t i = 0; i < product_case_count; i++)
            if (product_cases[i].has_sums)
                check(&product_cases[i], (product_size){1, 260, 1100, 270}, "f32");
    }
    if (saved)
        setenv("SHEAF_VEC", saved, 1);
    else
        unsetenv("SHEAF_VEC");
    free(saved);
}

/* Blocks of more than one step, row block and column block. */
static void test_large(void **state)
{
    (void)state;
    for (size_t i = 0; i < product_case_count; i++)
        if (!is_convolution(&product_cases[i]) && (!test_short() || i % 3 == 0))
            check(&product_cases[i], (product_size){1, 260, 1100, 270}, "f32");
}

static void test_types(void **state)
{
    (void)state;
    static const char *const dtypes[] = {"f64", "bf16", "f16"};
    for (size_t i = 0; i < product_case_count; i++)
        for (size_t j = 0; !is_convolution(&product_cases[i]) && j < 3; j++) {
            check(&product_cases[i], (product_size){9, 31, 37, 19}, dtypes[j]);
            if (!test_short() || i % 3 == j)
                check(&product_cases[i], (product_size){1, 260, 1040, 8}, dtypes[j]);
        }
}

static void test_convolutions(void **state)
{
    (void)state;
    static const product_size sizes[] = {
        {1, 1, 2, 1},   {2, 5, 35, 2},  {3, 8, 48, 3}, {1, 17, 40, 20},
        {2, 12, 33, 1}, {2, 6, 70, 32}, {1, 1, 64, 5}, {2, 3, 33, 40},
    };
    for (size_t i = 0; i < product_case_count; i++)
        for (size_t j = 0; is_convolution(&product_cases[i]) && j < sizeof sizes / sizeof *sizes;
             j++) {
            check(&product_cases[i], sizes[j], "f32");
            check(&product_cases[i], sizes[j], "bf16");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dots),         cmocka_unit_test(test_every_set),
        cmocka_unit_test(test_large),        cmocka_unit_test(test_types),
        cmocka_unit_test(test_convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
