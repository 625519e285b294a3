/* Dimensions along which batches are split: plain ones, and those of a step with micro-batches of
 * its own. */
#include "plan/recipe/batch_dimension.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "plan/propagate.h"
#include "plan/recipe/batch_rows.h"
#include "plan/recipe/recipe.h"
#include "plan/replicated_compute.h"
#include "sheaf/sheaf.h"

/* How the batch, 16 rows of 8, comes to the products. */
typedef enum manner { PLAIN, RESHAPED, SLICED, GIVEN } manner;

/* One micro-batch of the step: rows of the batch times w, squared and summed. */
static void put_turn(sf_buf *out, int microbatch, int rows)
{
    sf_buf_printf(out,
                  "  %%p%d = stablehlo.dot_general %%b%d, %%w, contracting_dims = [1] x [0] : "
                  "(tensor<%dx8xf32>, tensor<8x4xf32>) -> tensor<%dx4xf32>\n"
                  "  %%q%d = stablehlo.multiply %%p%d, %%p%d : tensor<%dx4xf32>\n",
                  microbatch, microbatch, rows, rows, microbatch, microbatch, microbatch, rows);
    sf_buf_printf(out,
                  "  %%l%d = stablehlo.reduce(%%q%d init: %%s0) applies stablehlo.add across "
                  "dimensions = [0, 1] : (tensor<%dx4xf32>, tensor<f32>) -> tensor<f32>\n"
                  "  %%s%d = stablehlo.add %%s%d, %%l%d : tensor<f32>\n",
                  microbatch, microbatch, rows, microbatch + 1, microbatch, microbatch);
    sf_buf_printf(out,
                  "  %%h%d = stablehlo.dot_general %%b%d, %%p%d, contracting_dims = [0] x [0] : "
                  "(tensor<%dx8xf32>, tensor<%dx4xf32>) -> tensor<8x4xf32>\n"
                  "  %%g%d = stablehlo.add %%g%d, %%h%d : tensor<8x4xf32>\n",
                  microbatch, microbatch, microbatch, rows, rows, microbatch + 1, microbatch,
                  microbatch);
}

static void put_block(sf_buf *out, manner how, int microbatch, int microbatches)
{
    int rows = 16 / microbatches;
    if (how == PLAIN) {
        sf_buf_printf(out, "  %%b%d = stablehlo.multiply %%x, %%x : tensor<16x8xf32>\n",
                      microbatch);
        return;
    }
    if (how == SLICED) {
        sf_buf_printf(out,
                      "  %%b%d = stablehlo.slice %%x [%d:%d, 0:8] : (tensor<16x8xf32>) -> "
                      "tensor<%dx8xf32>\n",
                      microbatch, microbatch * rows, (microbatch + 1) * rows, rows);
        return;
    }
    sf_buf_printf(out,
                  "  %%c%d = stablehlo.slice %%r [%d:%d, 0:%d, 0:8] : (tensor<%dx%dx8xf32>) -> "
                  "tensor<1x%dx8xf32>\n"
                  "  %%b%d = stablehlo.reshape %%c%d : (tensor<1x%dx8xf32>) -> tensor<%dx8xf32>\n",
                  microbatch, microbatch, microbatch + 1, rows, microbatches, rows, rows,
                  microbatch, microbatch, rows, rows);
}

static sf_graph *make_step(manner how, int microbatches)
{
    sf_buf text = {0};
    int rows = 16 / microbatches;
    sf_buf_printf(&text, "func.func @main(%%w: tensor<8x4xf32>, ");
    if (how == GIVEN)
        sf_buf_printf(&text, "%%r: tensor<%dx%dx8xf32>", microbatches, rows);
    else
        sf_buf_printf(&text, "%%x: tensor<16x8xf32>");
    sf_buf_printf(&text, ") -> (tensor<8x4xf32>, tensor<f32>) {\n"
                         "  %%s0 = stablehlo.constant dense<0.0> : tensor<f32>\n"
                         "  %%g0 = stablehlo.constant dense<0.0> : tensor<8x4xf32>\n");
    if (how == RESHAPED)
        sf_buf_printf(&text,
                      "  %%r = stablehlo.reshape %%x : (tensor<16x8xf32>) -> tensor<%dx%dx8xf32>\n",
                      microbatches, rows);
    for (int microbatch = 0; microbatch < microbatches; microbatch++) {
        put_block(&text, how, microbatch, microbatches);
        put_turn(&text, microbatch, rows);
    }
    sf_buf_printf(&text,
                  "  %%n = stablehlo.subtract %%w, %%g%d : tensor<8x4xf32>\n"
                  "  return %%n, %%s%d : tensor<8x4xf32>, tensor<f32>\n}\n",
                  microbatches, microbatches);
    sf_graph *graph = NULL;
    sf_diag *diag = sf_diag_new();
    if (sf_load_text(text.text, text.length, "step", NULL, diag, &graph) != SF_OK)
        fail_msg("%s\n%s", text.text, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    sf_buf_free(&text);
    return graph;
}

static void test_shares(void **state)
{
    (void)state;
    static const struct {
        manner how;
        int microbatches, parts, dim;
        int64_t period; /* 0: nothing splits */
    } cases[] = {
        {PLAIN, 1, 2, 0, 16},   {PLAIN, 1, 16, 0, 16},  {PLAIN, 1, 3, 0, 0},
        {RESHAPED, 4, 2, 0, 4}, {RESHAPED, 4, 4, 0, 4}, {RESHAPED, 2, 4, 0, 8},
        {RESHAPED, 2, 8, 0, 8}, {SLICED, 2, 2, 0, 8},   {SLICED, 2, 8, 0, 8},
        {SLICED, 4, 4, 0, 4},   {GIVEN, 4, 2, 1, 4},    {GIVEN, 4, 4, 1, 4},
        {GIVEN, 2, 4, 1, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_graph *graph = make_step(cases[i].how, cases[i].microbatches);
        sf_arena arena = {0};
        sf_uses uses = sf_uses_of(graph, &arena);
        sf_share share = sf_batch_share(graph, &uses, 1, 0, cases[i].parts);
        if (cases[i].period == 0)
            assert_int_equal(share.kind, SF_REPLICATED);
        else if (share.kind != SF_SPLIT || share.dim != cases[i].dim ||
                 share.period != cases[i].period)
            fail_msg("case %zu: S(%d,%d), not S(%d,%d)", i, share.dim, (int)share.period,
                     cases[i].dim, (int)cases[i].period);
        sf_arena_free(&arena);
        sf_graph_free(graph);
    }
}

/* Inputs beside the batch: features, and one row for all, have none of the batch's rows; values
 * that are reshaped to them have. Data parallelism does not split tensors without rows. */
static void test_rows(void **state)
{
    (void)state;
    static const char text[] =
        "func.func @main(%w: tensor<8x4xf32>, %x: tensor<16x8xf32>, %y: tensor<16x4xf32>, "
        "%scale: tensor<8xf32>, %one: tensor<1x8xf32>, %flat: tensor<128xf32>, %lam: tensor<f32>) "
        "-> (tensor<8x4xf32>, tensor<f32>) {\n"
        "  %s = stablehlo.broadcast_in_dim %scale, dims = [1] : (tensor<8xf32>) -> "
        "tensor<16x8xf32>\n"
        "  %o = stablehlo.broadcast_in_dim %one, dims = [0, 1] : (tensor<1x8xf32>) -> "
        "tensor<16x8xf32>\n"
        "  %f = stablehlo.reshape %flat : (tensor<128xf32>) -> tensor<16x8xf32>\n"
        "  %a = stablehlo.multiply %x, %s : tensor<16x8xf32>\n"
        "  %b = stablehlo.add %a, %o : tensor<16x8xf32>\n"
        "  %c = stablehlo.add %b, %f : tensor<16x8xf32>\n"
        "  %p = stablehlo.dot_general %c, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, "
        "tensor<8x4xf32>) -> tensor<16x4xf32>\n"
        "  %e = stablehlo.subtract %p, %y : tensor<16x4xf32>\n"
        "  %q = stablehlo.multiply %e, %e : tensor<16x4xf32>\n"
        "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %r = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0, 1] : "
        "(tensor<16x4xf32>, tensor<f32>) -> tensor<f32>\n"
        "  %l = stablehlo.multiply %r, %lam : tensor<f32>\n"
        "  %g = stablehlo.dot_general %c, %e, contracting_dims = [0] x [0] : (tensor<16x8xf32>, "
        "tensor<16x4xf32>) -> tensor<8x4xf32>\n"
        "  %n = stablehlo.subtract %w, %g : tensor<8x4xf32>\n"
        "  return %n, %l : tensor<8x4xf32>, tensor<f32>\n}\n";
    static const bool has_rows[] = {false, true, true, false, false, true, false};
    sf_graph *graph = NULL;
    sf_plan *plan;
    const sf_load_options options = {.size = sizeof options, .unroll = -1, .state = "0=0"};
    assert_int_equal(sf_load_text(text, strlen(text), "step", &options, NULL, &graph), SF_OK);
    assert_int_equal(sf_recipe_plan(graph, "dp", 4, NULL, NULL, &plan), SF_OK);
    assert_int_equal(sf_plan_propagate(graph, plan, NULL), SF_OK);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        if (sf_has_rows(graph, i) != has_rows[i])
            fail_msg("argument %u has %s", i, has_rows[i] ? "no rows" : "rows");
        assert_int_equal(plan->arguments[i].axes[0].kind, has_rows[i] ? SF_SPLIT : SF_REPLICATED);
    }
    sf_plan_free(plan);
    sf_graph_free(graph);
}

/* However the batch comes, data parallelism splits every product: only sums of partial gradients
 * remain. */
static void test_nothing_is_repeated(void **state)
{
    (void)state;
    for (manner how = PLAIN; how <= GIVEN; how++)
        for (int ranks = 2; ranks <= 4; ranks *= 2) {
            sf_graph *graph = make_step(how, how == PLAIN ? 1 : 4);
            sf_plan *plan;
            assert_int_equal(graph->arguments[0].role, SF_ROLE_PARAM);
            assert_int_equal(sf_recipe_plan(graph, "dp", ranks, NULL, NULL, &plan), SF_OK);
            assert_int_equal(sf_plan_propagate(graph, plan, NULL), SF_OK);
            sf_repeated repeated = sf_find_repeated(graph, plan);
            assert_true(repeated.share < 0.2);
            assert_true(repeated.once > 0 && repeated.done > repeated.once);
            sf_plan_free(plan);
            sf_graph_free(graph);
        }
}

/* A plan that splits nothing repeats all, and that is warned of. */
static void test_all_is_repeated(void **state)
{
    (void)state;
    sf_graph *graph = make_step(PLAIN, 1);
    sf_diag *diag = sf_diag_new();
    sf_plan *plan;
    const char *pin = "w=R@data";
    sf_plan_spec options = {.size = sizeof options, .mesh = "data=4", .npins = 1, .pins = &pin};
    assert_int_equal(sf_pin_step(graph, &options, diag, &plan), SF_OK);
    assert_true(sf_find_repeated(graph, plan).share == 0.75);
    assert_int_equal(sf_diag_count(diag), 1);
    assert_non_null(strstr(sf_diag_text(diag, 0), "warning: 7"));
    assert_non_null(strstr(sf_diag_text(diag, 0), "dot_general"));
    sf_plan_free(plan);
    sf_diag_free(diag);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_nothing_is_repeated),
        cmocka_unit_test(test_all_is_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
