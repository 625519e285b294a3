/* Stacks of layers in pipelines: they are found where their layers are in several stages, and nowhere else. */
#include "plan/pipe/stacked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "sheaf/sheaf.h"
#include "support/chain.h"
#include "support/plans.h"

enum { LAYERS = 4 };

/* A chain of products whose weights are slices of one tensor. */
static sf_graph *stacked_chain(void)
{
    sf_buf text = {0};
    sf_buf_printf(&text, "func.func @main(%%w: tensor<4x8x8xf32>, %%x0: tensor<16x8xf32>) -> "
                         "(tensor<4x8x8xf32>, tensor<f32>) {\n"
                         "  %%zero = stablehlo.constant dense<0.0> : tensor<f32>\n");
    for (int l = 0; l < LAYERS; l++)
        sf_buf_printf(
            &text,
            "  %%s%d = stablehlo.slice %%w [%d:%d, 0:8, 0:8] : (tensor<4x8x8xf32>) -> "
            "tensor<1x8x8xf32>\n"
            "  %%w%d = stablehlo.reshape %%s%d : (tensor<1x8x8xf32>) -> tensor<8x8xf32>\n"
            "  %%x%d = stablehlo.dot_general %%x%d, %%w%d, contracting_dims = [1] x [0] : "
            "(tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>\n",
            l, l, l + 1, l, l, l + 1, l, l);
    sf_buf_printf(&text,
                  "  %%q = stablehlo.multiply %%x4, %%x4 : tensor<16x8xf32>\n"
                  "  %%loss = stablehlo.reduce(%%q init: %%zero) applies stablehlo.add across "
                  "dimensions = [0, 1] : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32>\n");
    for (int l = LAYERS - 1; l >= 0; l--) {
        sf_buf_printf(
            &text,
            "  %%g%d = stablehlo.dot_general %%x%d, %%%s%d, contracting_dims = [0] x [0] : "
            "(tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>\n"
            "  %%r%d = stablehlo.reshape %%g%d : (tensor<8x8xf32>) -> tensor<1x8x8xf32>\n",
            l, l, l == LAYERS - 1 ? "x" : "d", l + 1, l, l);
        sf_buf_printf(
            &text,
            "  %%d%d = stablehlo.dot_general %%%s%d, %%w%d, contracting_dims = [1] x [1] : "
            "(tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>\n",
            l, l == LAYERS - 1 ? "x" : "d", l + 1, l);
    }
    sf_buf_printf(&text,
                  "  %%g = stablehlo.concatenate %%r0, %%r1, %%r2, %%r3, dim = 0 : "
                  "(tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>) -> "
                  "tensor<4x8x8xf32>\n"
                  "  %%n = stablehlo.subtract %%w, %%g : tensor<4x8x8xf32>\n"
                  "  return %%n, %%loss : tensor<4x8x8xf32>, tensor<f32>\n}\n");
    sf_graph *graph = test_step_text(text.text);
    sf_buf_free(&text);
    return graph;
}

/* How many stacks the plan in so many stages has, and whether it is warned of. */
static uint32_t count_stacks(sf_graph *graph, const char *stages, bool *warned)
{
    sf_pin_options options = {.size = sizeof options,
                              .stages = stages,
                              .ranks = stages ? 0 : 2,
                              .recipe = stages ? NULL : "dp",
                              .micro_batches = 4};
    sf_diag *diag = sf_diag_new();
    sf_plan *plan = NULL;
    if (sf_pin_step(graph, &options, diag, &plan) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    *warned = false;
    for (int i = 0; i < sf_diag_count(diag); i++)
        *warned = *warned || strstr(sf_diag_text(diag, i), "stacks of layers");
    sf_stacked stacked = sf_find_stacked(graph, plan->pipeline);
    assert_true(stacked.bytes <= stacked.of || !stages);
    sf_plan_free(plan);
    sf_diag_free(diag);
    sf_graph_free(graph);
    return stacked.count;
}

static void test_stacks_are_found(void **state)
{
    (void)state;
    bool warned;
    assert_int_equal(count_stacks(stacked_chain(), "2", &warned), 1);
    assert_true(warned);
    assert_int_equal(count_stacks(stacked_chain(), "1", &warned), 0);
    assert_false(warned);
    assert_int_equal(count_stacks(stacked_chain(), NULL, &warned), 0);
    assert_false(warned);
    assert_int_equal(count_stacks(test_chain(LAYERS, 16, 8, false), "2", &warned), 0);
    assert_false(warned);
    assert_int_equal(count_stacks(test_chain(LAYERS, 16, 8, true), "2", &warned), 0);
    assert_false(warned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stacks_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
