/* Stacks of layers in pipelines: their rows are in the groups that compute them; where that cannot be, there is a warning. */
#include "plan/stacked_layers.h"

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

/* A chain of products whose weights are slices of one tensor. `mixed`: its gradient is turned round before it is added. */
static sf_graph *stacked_chain(bool mixed)
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
                  "  %%h = stablehlo.reverse %%g, dims = [0] : tensor<4x8x8xf32>\n"
                  "  %%n = stablehlo.subtract %%w, %%%s : tensor<4x8x8xf32>\n"
                  "  return %%n, %%loss : tensor<4x8x8xf32>, tensor<f32>\n}\n",
                  mixed ? "h" : "g");
    sf_graph *graph = test_step_text(text.text);
    sf_buf_free(&text);
    return graph;
}

/* The layout of the first parameter, how many stacks the plan cannot distribute, and whether there
 * is a warning. */
typedef struct seen {
    char layout[SF_LAYOUT_TEXT];
    uint32_t stacked;
    bool warned;
} seen;

static seen look(sf_graph *graph, const sf_plan_spec *options)
{
    sf_diag *diag = sf_diag_new();
    sf_plan *plan = NULL;
    seen out = {.warned = false};
    if (sf_pin_step(graph, options, diag, &plan) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    for (int i = 0; i < sf_diag_count(diag); i++)
        out.warned = out.warned || strstr(sf_diag_text(diag, i), "stacks of layers");
    sf_stacked stacked = sf_find_stacked(graph, plan);
    assert_true(stacked.bytes <= stacked.of || !plan->pipeline);
    out.stacked = stacked.count;
    assert_non_null(sf_plan_argument_layout(plan, graph, 0, out.layout));
    sf_plan_free(plan);
    sf_diag_free(diag);
    sf_graph_free(graph);
    return out;
}

static void test_rows_are_dealt_out(void **state)
{
    (void)state;
    static const struct {
        const char *stages, *schedule, *mesh, *pin, *layout;
        bool warned;
    } cases[] = {
        {"1", NULL, NULL, NULL, "[R]", false},
        {"2", NULL, NULL, NULL, "[At(0:0-1,1:2-3)]", false},
        {"4", NULL, NULL, NULL, "[At(0:0,1:1,2:2,3:3)]", false},
        {"3", NULL, NULL, NULL, NULL, false}, /* not equally many */
        {"4", "interleaved:2", NULL, NULL, "[At(0:0+2,1:1+3)]", false},
        {"4", "zb-v", NULL, NULL, "[At(0:0+3,1:1-2)]", false},
        {"2", "chimera", NULL, NULL, "[At(0:0-1,1:2-3)]", false},
        {"2", NULL, "pipe=2,data=2", "w=S(1)@data", "[At(0:0-1,1:2-3), S(1)]", false},
        {"2", NULL, "pipe=2,data=2", "w=S(0)@data", "[At(0), S(0)]", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *pins[] = {cases[i].pin};
        sf_plan_spec options = {.size = sizeof options,
                                .stages = cases[i].stages,
                                .schedule = cases[i].schedule,
                                .mesh = cases[i].mesh,
                                .pins = pins,
                                .npins = cases[i].pin ? 1 : 0,
                                .micro_batches = 4};
        seen s = look(stacked_chain(false), &options);
        if (cases[i].layout)
            assert_string_equal(s.layout, cases[i].layout);
        assert_int_equal(s.stacked, cases[i].warned);
        assert_int_equal(s.warned, cases[i].warned);
    }
}

static void test_other_tensors_are_not(void **state)
{
    (void)state;
    sf_plan_spec options = {.size = sizeof options, .stages = "2", .micro_batches = 4};
    seen mixed = look(stacked_chain(true), &options);
    assert_string_equal(mixed.layout, "[At(0)]");
    assert_int_equal(mixed.stacked, 1);
    assert_true(mixed.warned);
    for (int tied = 0; tied < 2; tied++) {
        seen chain = look(test_chain(LAYERS, 16, 8, tied), &options);
        assert_string_equal(chain.layout, "[At(0)]");
        assert_int_equal(chain.stacked, 0);
        assert_false(chain.warned);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_dealt_out),
        cmocka_unit_test(test_other_tensors_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
