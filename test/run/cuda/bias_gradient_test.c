/* Sums of a factor beside a product: which loops they are, and that both ways to run them, on the host in the place of a GPU, give what the
 * oracle gives. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/cuda/bias_gradient.h"
#include "run/engine/engine_backend.h"
#include "sheaf/sheaf.h"
#include "support/emulate.h"
#include "support/plans.h"
#include "support/run.h"

/* d = a b, of 48 rows and 16 columns; `sum` of it is s, of a type, and `product` of it is w. */
#define STEP(type, sum, product, results, returned)                                                \
    "func.func public @main(%a: tensor<48x24x" type ">, %b: tensor<24x16x" type ">,\n"             \
    "    %x: tensor<48x32x" type ">, %y: tensor<16x32x" type ">) -> (" results ") {\n"             \
    "  %z = stablehlo.constant dense<0.0> : tensor<" type ">\n"                                    \
    "  %d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<48x24x" type      \
    ">, tensor<24x16x" type ">) -> tensor<48x16x" type ">\n" sum product                           \
    "  return %w, %s : " returned "\n}\n"
#define SUM(type, op, dimension, size)                                                             \
    "  %s = stablehlo.reduce(%d init: %z) applies stablehlo." op                                   \
    " across dimensions = [" dimension "] : (tensor<48x16x" type ">, tensor<" type                 \
    ">) -> tensor<" size "x" type ">\n"
#define FIRST(type)                                                                                \
    "  %w = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (tensor<48x16x" type      \
    ">, tensor<48x32x" type ">) -> tensor<16x32x" type ">\n"
#define SECOND(type)                                                                               \
    "  %w = stablehlo.dot_general %x, %d, contracting_dims = [0] x [0] : (tensor<48x32x" type      \
    ">, tensor<48x16x" type ">) -> tensor<32x16x" type ">\n"
#define BEHIND(type)                                                                               \
    "  %t = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0] : "        \
    "(tensor<16x" type ">, tensor<" type ">) -> tensor<" type ">\n"                                \
    "  %u = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<" type ">) -> tensor<48x32x" type   \
    ">\n  %v = stablehlo.add %x, %u : tensor<48x32x" type ">\n"                                    \
    "  %w = stablehlo.dot_general %d, %v, contracting_dims = [0] x [0] : (tensor<48x16x" type      \
    ">, tensor<48x32x" type ">) -> tensor<16x32x" type ">\n"
#define FORWARD(type)                                                                              \
    "  %w = stablehlo.dot_general %d, %y, contracting_dims = [1] x [0] : (tensor<48x16x" type      \
    ">, tensor<16x32x" type ">) -> tensor<48x32x" type ">\n"
#define WHOLE(type, product, size, width)                                                          \
    STEP(type, SUM(type, "add", "0", width), product(type),                                        \
         "tensor<" size "x" type ">, tensor<" width "x" type ">",                                  \
         "tensor<" size "x" type ">, tensor<" width "x" type ">")

typedef struct trial {
    const char *name, *text;
    int count, factor; /* of pairs, and what is summed */
} trial;

static const trial trials[] = {
    {"first factor", WHOLE("bf16", FIRST, "16x32", "16"), 1, 0},
    {"second factor", WHOLE("bf16", SECOND, "32x16", "16"), 1, 1},
    {"half", WHOLE("f16", FIRST, "16x32", "16"), 1, 0},
    {"wide", WHOLE("f32", FIRST, "16x32", "16"), 0, 0},
    {"wanted before", WHOLE("bf16", BEHIND, "16x32", "16"), 0, 0},
    {"not what the product sums over", WHOLE("bf16", FORWARD, "48x32", "16"), 0, 0},
    {"the other dimension",
     STEP("bf16", SUM("bf16", "add", "1", "48"), FIRST("bf16"),
          "tensor<16x32xbf16>, tensor<48xbf16>", "tensor<16x32xbf16>, tensor<48xbf16>"),
     0, 0},
    {"no sum",
     STEP("bf16", SUM("bf16", "maximum", "0", "16"), FIRST("bf16"),
          "tensor<16x32xbf16>, tensor<16xbf16>", "tensor<16x32xbf16>, tensor<16xbf16>"),
     0, 0},
};

static int library_or_loop;

static int take_way(sf_device *d, uint64_t key, int ways, int (*run)(void *context, int way),
                    void *context)
{
    (void)d;
    assert_true(key != 0);
    assert_int_equal(ways, 2);
    assert_int_equal(run(context, library_or_loop), 0);
    return library_or_loop;
}

static void fill(sf_engine *engine, uint32_t seed)
{
    char data[48 * 32 * 4];
    for (uint32_t a = 0; a < 4; a++) {
        const sf_type *type = sf_engine_argument_type(engine, a);
        for (int64_t i = 0; i < type->count; i++) {
            seed = seed * 1664525 + 1013904223;
            sf_store_f64(type->dtype, data, i, (double)(seed >> 24) / 64 - 2);
        }
        assert_int_equal(sf_engine_write(engine, a, data, NULL), SF_OK);
    }
}

static void count_pairs(const trial *t, const cuda *c)
{
    int count = 0, left = 0;
    for (uint32_t i = 0; i < c->program->ninsts; i++) {
        int factor;
        if (sf_cuda_sum_beside(c->program, i, &factor) != SF_NONE)
            assert_int_equal(factor, t->factor);
        count += c->top.insts[i].sum != NULL;
        left += c->top.insts[i].is_left;
    }
    if (count != t->count || left != t->count)
        fail_msg("%s: %d pairs, not %d", t->name, count, t->count);
}

static void compare(const trial *t, const sf_runner *oracle, const sf_runner *device)
{
    for (uint32_t r = 0; r < 2; r++) {
        sf_tensor want = test_result(oracle->engine, r), got = test_result(device->engine, r);
        double most = 0, error = 0;
        for (int64_t i = 0; i < want.type->count; i++) {
            most = fmax(most, fabs(sf_get_f64(&want, i)));
            error = fmax(error, fabs(sf_get_f64(&want, i) - sf_get_f64(&got, i)));
        }
        if (!(error <= most * 0x1p-6)) /* oracles of 16 bits round every sum */
            fail_msg("%s: %g of %g", t->name, error, most);
    }
}

static void test_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        for (library_or_loop = 0; library_or_loop < 2; library_or_loop++) {
            const trial *t = &trials[i];
            sf_graph *graph = test_step_text(t->text);
            sf_runner oracle = test_open_engine(graph, "oracle", 1, NULL),
                      device = test_open_engine(graph, "cuda", 1, NULL);
            cuda *c = device.engine->self;
            sf_device_table table = *c->device->table;
            table.fastest = take_way;
            c->device->table = &table;
            count_pairs(t, c);
            for (uint32_t s = 0; s < 4; s++) { /* graphs among them */
                fill(oracle.engine, s);
                fill(device.engine, s);
                assert_int_equal(sf_engine_step(oracle.engine, NULL), SF_OK);
                assert_int_equal(sf_engine_step(device.engine, NULL), SF_OK);
                compare(t, &oracle, &device);
            }
            for (uint32_t n = 0; n < c->program->ninsts; n++)
                if (c->top.insts[n].sum)
                    assert_int_equal(c->top.insts[n].sum->way, library_or_loop);
            sf_runner_close(&device);
            sf_runner_close(&oracle);
            sf_graph_free(graph);
        }
}

int main(void)
{
    test_emulate_gpu();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
