/* Products of f32 in f16 and fp8, on all engines, with factors of all sizes: what is lost is the rounding of factors, and what is
 * smaller than the largest of its tensor by all of the type's range. The judge are sums in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "run/mixed_precision.h"
#include "run/runner.h"
#include "sheaf/sheaf.h"
#include "support/emulate.h"
#include "support/run.h"

enum { ROWS = 32, DEPTH = 48, COLUMNS = 16 };

/* Factors in two orders: the second product has what is summed first in both. */
static const char text[] =
    "func.func @main(%a: tensor<32x48xf32>, %b: tensor<48x16xf32>, %c: tensor<32x16xf32>) -> "
    "(tensor<32x16xf32>, tensor<48x16xf32>) {\n"
    "%x = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x48xf32>, "
    "tensor<48x16xf32>) -> tensor<32x16xf32>\n"
    "%y = stablehlo.dot_general %a, %c, contracting_dims = [0] x [0] : (tensor<32x48xf32>, "
    "tensor<32x16xf32>) -> tensor<48x16xf32>\n"
    "return %x, %y : tensor<32x16xf32>, tensor<48x16xf32>\n}\n";

static sf_graph *load(const char *step)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    if (sf_load_text(step, strlen(step), "step", NULL, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

static sf_runner open_runner(const sf_graph *graph, const char *engine, sf_precision precision)
{
    sf_runner_options options = {
        .engine = engine, .check = true, .with = {.threads = 1, .precision = precision}};
    sf_diag *diag = sf_diag_new();
    sf_runner runner;
    if (sf_runner_open(graph, &options, diag, &runner) != SF_OK)
        fail_msg("%s: %s", engine, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return runner;
}

/* Numbers of several sizes, both signs, and the largest `size`. */
static void fill(sf_tensor *tensor, double size, uint32_t seed)
{
    for (int64_t i = 0; i < tensor->type->count; i++) {
        seed = seed * 1664525 + 1013904223;
        double x = ldexp((double)(seed >> 8) / (1 << 24) + 1, -(int)(seed % 7)) / 2;
        sf_store_f64(SF_F32, tensor->data, i, seed >> 31 ? -size * x : size * x);
    }
}

static double largest(const sf_tensor *tensor)
{
    double most = 0;
    for (int64_t i = 0; i < tensor->type->count; i++)
        most = fmax(most, fabs(sf_get_f64(tensor, i)));
    return most;
}

/* How far a factor may be from itself: half of a unit of `mantissa` bits, or what is below the type's range. */
static double far_off(double x, double most, sf_precision precision)
{
    return precision == SF_PRECISION_F16 ? fabs(x) * 0x1p-11 + most * 0x1p-38
                                         : fabs(x) * 0x1p-4 + most * 0x1p-17;
}

/* Element (i, j) of the product, whose factors are walked with these steps; returns whether it is as in float. */
static bool check_element(const sf_tensor *a, int64_t at, int64_t step, const sf_tensor *b,
                          int64_t from, int64_t stride, int64_t depth, double got,
                          sf_precision precision)
{
    double sum = 0, allowed = 0, most_a = largest(a), most_b = largest(b);
    for (int64_t k = 0; k < depth; k++) {
        double x = sf_get_f64(a, at + k * step), y = sf_get_f64(b, from + k * stride);
        double dx = far_off(x, most_a, precision), dy = far_off(y, most_b, precision);
        sum += x * y;
        allowed += fabs(x) * dy + fabs(y) * dx + dx * dy + fabs(x * y) * 0x1p-18;
    }
    if (!(fabs(got - sum) <= allowed))
        fail_msg("precision %d: %g, not %g, by more than %g", (int)precision, got, sum, allowed);
    return fabs(got - sum) <= fabs(sum) * 0x1p-20;
}

static void check_sizes(sf_runner *runner, const double sizes[3], sf_precision precision)
{
    sf_diag *diag = sf_diag_new();
    sf_tensor in[3];
    for (uint32_t i = 0; i < 3; i++) {
        in[i] = test_argument(runner->engine, i);
        fill(&in[i], sizes[i], i + 7);
    }
    assert_int_equal(sf_engine_step(runner->engine, diag), SF_OK);
    sf_tensor x = test_result(runner->engine, 0), y = test_result(runner->engine, 1);
    int same = 0;
    for (int64_t j = 0; j < COLUMNS; j++) {
        for (int64_t i = 0; i < ROWS; i++)
            same += check_element(&in[0], i * DEPTH, 1, &in[1], j, COLUMNS, DEPTH,
                                  sf_get_f64(&x, i * COLUMNS + j), precision);
        for (int64_t i = 0; i < DEPTH; i++)
            same += check_element(&in[0], i, DEPTH, &in[2], j, COLUMNS, ROWS,
                                  sf_get_f64(&y, i * COLUMNS + j), precision);
    }
    if (sizes[0] > 0 && sizes[1] > 0) /* something was rounded */
        assert_true(same < (ROWS + DEPTH) * COLUMNS / 2);
    sf_diag_free(diag);
}

/* What is no number is not hidden, and changes nothing that it has no part in. */
static void check_infinity(sf_runner *runner, double what)
{
    sf_diag *diag = sf_diag_new();
    sf_tensor a = test_argument(runner->engine, 0), x = test_result(runner->engine, 0);
    double before = sf_get_f64(&x, COLUMNS);
    sf_store_f64(SF_F32, a.data, 0, what);
    assert_int_equal(sf_engine_step(runner->engine, diag), SF_OK);
    x = test_result(runner->engine, 0);
    assert_true(!isfinite(sf_get_f64(&x, 0)));
    assert_true(fabs(sf_get_f64(&x, COLUMNS) - before) <= 0.1 * fabs(before));
    sf_diag_free(diag);
}

static void test_sizes(void **state)
{
    (void)state;
    static const char *const engines[] = {"cpu", "oracle", "cuda"};
    static const double sizes[][3] = {
        {1, 1, 1},           {1e-12, 1, 1e-15},     {1e-14, 1e12, 1e-9},
        {1e15, 1e3, 1e9},    {0, 1, 1e-12},         {1e30, 1e-25, 1e5},
        {1e-30, 1e-5, 1e25}, {2.5e38, 1e-3, 1e-30}, {3.9, 65000, 1.5}};
    sf_graph *graph = load(text);
    test_emulate_gpu();
    for (int e = 0; e < 3; e++)
        for (int p = SF_PRECISION_F16; p <= SF_PRECISION_FP8; p++) {
            sf_runner runner = open_runner(graph, engines[e], (sf_precision)p);
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                check_sizes(&runner, sizes[i], (sf_precision)p);
            check_infinity(&runner, HUGE_VAL);
            check_infinity(&runner, (double)NAN);
            sf_runner_close(&runner);
        }
    sf_graph_free(graph);
}

/* What types products have in the step, by precision: of layers, of sizes that fp8 has none of, of attention, of more precision. */
static void test_types(void **state)
{
    (void)state;
    static const char step[] =
        "func.func @main(%a: tensor<32x48xf32>, %b: tensor<48x16xf32>, %c: tensor<48x5xf32>, "
        "%d: tensor<2x16x16xf32>, %e: tensor<32x48xbf16>, %f: tensor<48x16xbf16>) -> "
        "(tensor<32x16xf32>, tensor<32x5xf32>, tensor<2x16x16xf32>, tensor<32x16xf32>, "
        "tensor<32x16xbf16>) {\n"
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x48xf32>, "
        "tensor<48x16xf32>) -> tensor<32x16xf32>\n"
        "%1 = stablehlo.dot_general %a, %c, contracting_dims = [1] x [0] : (tensor<32x48xf32>, "
        "tensor<48x5xf32>) -> tensor<32x5xf32>\n"
        "%2 = stablehlo.dot_general %d, %d, batching_dims = [0] x [0], contracting_dims = [2] x "
        "[2] : (tensor<2x16x16xf32>, tensor<2x16x16xf32>) -> tensor<2x16x16xf32>\n"
        "%3 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGHEST, "
        "HIGHEST] : (tensor<32x48xf32>, tensor<48x16xf32>) -> tensor<32x16xf32>\n"
        "%4 = stablehlo.dot_general %e, %f, contracting_dims = [1] x [0] : (tensor<32x48xbf16>, "
        "tensor<48x16xbf16>) -> tensor<32x16xbf16>\n"
        "return %0, %1, %2, %3, %4 : tensor<32x16xf32>, tensor<32x5xf32>, tensor<2x16x16xf32>, "
        "tensor<32x16xf32>, tensor<32x16xbf16>\n}\n";
    static const struct {
        sf_precision precision;
        bool has_fp8;
        int count[4]; /* of f32, bf16, f16, fp8 */
    } expected[] = {{SF_PRECISION_BF16, false, {1, 4, 0, 0}},
                    {SF_PRECISION_F16, false, {1, 2, 2, 0}},
                    {SF_PRECISION_FP8, true, {1, 2, 0, 2}},
                    {SF_PRECISION_FP8, false, {1, 4, 0, 0}}};
    static const sf_dtype types[] = {SF_F32, SF_BF16, SF_F16, SF_F8E4M3FN};
    sf_graph *graph = load(step);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        sf_graph *narrowed = sf_narrow_products(graph, expected[i].precision, expected[i].has_fp8);
        int count[4] = {0};
        for (size_t k = 0; k < narrowed->nnodes; k++)
            for (int t = 0; t < 4; t++)
                count[t] +=
                    sf_is(narrowed->nodes[k], SF_OP_DOT_GENERAL) &&
                    sf_type_of(narrowed, narrowed->nodes[k]->operands[0])->dtype == types[t];
        for (int t = 0; t < 4; t++)
            assert_int_equal(count[t], expected[i].count[t]);
        sf_graph_free(narrowed);
    }
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
