/* Every op on the CPU engine against the oracle: the samples of the op table, every pointwise op on every
 * type, and shapes that make loops cut, fold, expand and gather in all ways; with one thread and with
 * several. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "op/op.h"
#include "op/samples.h"
#include "op/util.h"
#include "run/engine.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void fill(sf_tensor tensor)
{
    for (int64_t i = 0; i < tensor.type->count; i++) {
        uint64_t r = next_random();
        if (sf_is_float(tensor.type->dtype))
            sf_store_f64(tensor.type->dtype, tensor.data, i, (double)(r % 4001) / 1000.0 - 2.0);
        else
            sf_store_i64(tensor.type->dtype, tensor.data, i, (int64_t)(r % 9) - 2);
    }
}

/* Sums may be added in another order, and functions may differ in the last places. */
static double tolerance(sf_dtype dtype)
{
    return dtype == SF_F64 ? 1e-12 : sf_dtype_get(dtype)->bits >= 32 ? 2e-6 : 1e-2;
}

static bool close(const sf_tensor *a, const sf_tensor *b, int64_t i, double scale)
{
    sf_dtype dtype = a->type->dtype;
    if (!sf_is_float(dtype))
        return sf_get_i64(a, i) == sf_get_i64(b, i);
    double x = sf_get_f64(a, i), y = sf_get_f64(b, i);
    if (isnan(x) || isnan(y) || isinf(x) || isinf(y))
        return x == y || (isnan(x) && isnan(y));
    double slack = sf_dtype_get(dtype)->bits < 16 ? 0.5 * fabs(y) + 0.1 : 0;
    return fabs(x - y) <= tolerance(dtype) * (fabs(y) + scale) + slack;
}

static void compare(const char *text, const sf_graph *graph, sf_engine *ours, sf_engine *oracle)
{
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        sf_tensor a = sf_engine_result(ours, i), b = sf_engine_result(oracle, i);
        double scale = 0;
        for (int64_t k = 0; sf_is_float(b.type->dtype) && k < b.type->count; k++)
            if (isfinite(sf_get_f64(&b, k)) && fabs(sf_get_f64(&b, k)) > scale)
                scale = fabs(sf_get_f64(&b, k));
        for (int64_t k = 0; k < b.type->count; k++)
            if (!close(&a, &b, k, scale)) {
                print_error("%s\nresult %u element %d is %.9g, expected %.9g\n", text, i, (int)k,
                            sf_get_f64(&a, k), sf_get_f64(&b, k));
                fail();
            }
    }
}

static bool run_text(const char *text, int threads, bool must_load)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    sf_load_options load = {.unroll = -1};
    if (sf_load_text(text, strlen(text), "sample", &load, diag, &graph) != SF_OK) {
        if (must_load)
            print_error("%s\n%s\n", text, sf_diag_text(diag, 0));
        sf_diag_free(diag);
        assert_false(must_load);
        return false;
    }
    sf_engine *ours, *oracle;
    sf_engine_options options = {.kind = SF_ENGINE_CPU, .threads = threads};
    assert_int_equal(sf_engine_new(graph, &options, diag, &ours), SF_OK);
    options.kind = SF_ENGINE_ORACLE;
    assert_int_equal(sf_engine_new(graph, &options, diag, &oracle), SF_OK);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_tensor a = sf_engine_argument(ours, i), b = sf_engine_argument(oracle, i);
        fill(a);
        memcpy(b.data, a.data, (size_t)sf_type_bytes(a.type));
    }
    assert_int_equal(sf_engine_step(ours, diag), SF_OK);
    assert_int_equal(sf_engine_step(oracle, diag), SF_OK);
    compare(text, graph, ours, oracle);
    sf_engine_free(ours);
    sf_engine_free(oracle);
    sf_graph_free(graph);
    sf_diag_free(diag);
    return true;
}

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        char text[4096];
        bool two = strchr(samples[i].results, ',') != NULL;
        snprintf(text, sizeof text, "func.func public @main(%s) -> (%s) {\n%s\nreturn %s : %s\n}\n",
                 samples[i].arguments, samples[i].results, samples[i].body,
                 two ? "%r#0, %r#1" : "%r", samples[i].results);
        run_text(text, 1, true);
    }
}

static void test_pointwise(void **state)
{
    (void)state;
    for (int code = 0; code < SF_OP_COUNT; code++) {
        const sf_opdef *def = sf_opdef_get((sf_opcode)code);
        if (def->factors != sf_factors_pointwise || def->nattrs || def->max_operands > 2)
            continue;
        for (int dtype = 0; dtype < SF_DTYPE_COUNT; dtype++)
            for (int to_bool = 0; to_bool < 2; to_bool++) {
                const char *from = sf_dtype_get((sf_dtype)dtype)->name;
                const char *to = to_bool ? "i1" : from;
                bool two = def->max_operands == 2;
                char text[1024];
                snprintf(text, sizeof text,
                         "func.func public @main(%%a: tensor<13x7x%s>, %%b: tensor<13x7x%s>) -> "
                         "tensor<13x7x%s> {\n%%r = \"%s.%s\"(%%a%s) : (tensor<13x7x%s>%s%s%s) -> "
                         "tensor<13x7x%s>\nreturn %%r : tensor<13x7x%s>\n}\n",
                         from, from, to, def->dialect, def->name, two ? ", %b" : "", from,
                         two ? ", tensor<13x7x" : "", two ? from : "", two ? ">" : "", to, to);
                run_text(text, 1, false);
            }
    }
}

/* Softmax, layer norm, sums over rows and columns, broadcasts and transposes, at sizes below, at and above
 * those of tiles. */
static const char loops[] =
    "func.func public @main(%%x: tensor<%dx%dxf32>, %%g: tensor<%dxf32>, %%w: tensor<%dx%dxf32>)"
    " -> (tensor<%dx%dxf32>, tensor<%dxf32>, tensor<%dxf32>, tensor<f32>, tensor<%dx%dxf32>) {\n"
    "%%low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "%%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%%m = stablehlo.reduce(%%x init: %%low) applies stablehlo.maximum across dimensions = [1] : "
    "(tensor<%dx%dxf32>, tensor<f32>) -> tensor<%dxf32>\n"
    "%%mb = stablehlo.broadcast_in_dim %%m, dims = [0] : (tensor<%dxf32>) -> tensor<%dx%dxf32>\n"
    "%%d = stablehlo.subtract %%x, %%mb : tensor<%dx%dxf32>\n"
    "%%e = stablehlo.exponential %%d : tensor<%dx%dxf32>\n"
    "%%s = stablehlo.reduce(%%e init: %%zero) applies stablehlo.add across dimensions = [1] : "
    "(tensor<%dx%dxf32>, tensor<f32>) -> tensor<%dxf32>\n"
    "%%sb = stablehlo.broadcast_in_dim %%s, dims = [0] : (tensor<%dxf32>) -> tensor<%dx%dxf32>\n"
    "%%p = stablehlo.divide %%e, %%sb : tensor<%dx%dxf32>\n"
    "%%gb = stablehlo.broadcast_in_dim %%g, dims = [1] : (tensor<%dxf32>) -> tensor<%dx%dxf32>\n"
    "%%q = stablehlo.multiply %%p, %%gb : tensor<%dx%dxf32>\n"
    "%%c = stablehlo.reduce(%%q init: %%zero) applies stablehlo.add across dimensions = [0] : "
    "(tensor<%dx%dxf32>, tensor<f32>) -> tensor<%dxf32>\n"
    "%%l = stablehlo.log %%s : tensor<%dxf32>\n"
    "%%t = stablehlo.reduce(%%q init: %%zero) applies stablehlo.add across dimensions = [0, 1] : "
    "(tensor<%dx%dxf32>, tensor<f32>) -> tensor<f32>\n"
    "%%wt = stablehlo.transpose %%w, dims = [1, 0] : (tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n"
    "%%u = stablehlo.add %%wt, %%q : tensor<%dx%dxf32>\n"
    "return %%q, %%c, %%l, %%t, %%u : tensor<%dx%dxf32>, tensor<%dxf32>, tensor<%dxf32>, "
    "tensor<f32>, tensor<%dx%dxf32>\n}\n";

static void test_loops(void **state)
{
    (void)state;
    static const int sizes[][2] = {{2, 3},    {1, 17},    {5, 1000},  {64, 64},
                                   {7, 9000}, {3000, 11}, {300, 300}, {2, 40000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int threads = 1; threads <= 3; threads++) {
            int r = sizes[i][0], c = sizes[i][1];
            static char text[8192];
            snprintf(text, sizeof text, loops, r, c, c, c, r, r, c, c, r, r, c, r, c, r, r, r, c, r,
                     c, r, c, r, c, r, r, r, c, r, c, c, r, c, r, c, r, c, c, r, r, c, c, r, r, c,
                     r, c, r, c, c, r, r, c);
            run_text(text, threads, true);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_pointwise),
        cmocka_unit_test(test_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
