/* One element of each row: which gathers and scatters become loops, and that these loops compute
 * the text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "run/cpu/cpu_target.h"
#include "sheaf/sheaf.h"
#include "support/programs.h"
#include "support/run.h"

enum { B = 2, T = 3, V = 37 };

#define ROWS "tensor<2x3x1x1xi32>"
#define WIDE "tensor<2x3x37xf32>"
#define NARROW "tensor<2x3x37xbf16>"
#define DIMS                                                                                       \
    "inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = "   \
    "[0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3"

/* %x is gathered at %i, and %u is added there, to the tensor of `into`. */
static sf_buf text_of(const char *into, const char *dims, const char *indices, const char *updates,
                      const char *body)
{
    sf_buf text = {0};
    sf_buf_printf(&text,
                  "func.func public @main(%%x: " NARROW ", %%i: %s, %%u: %s, %%o: " WIDE
                  ") -> (tensor<2x3x1xf32>, " WIDE ") {\n",
                  indices, updates);
    sf_buf_printf(
        &text,
        "%%w = stablehlo.convert %%x : (" NARROW ") -> " WIDE "\n"
        "%%n = stablehlo.constant dense<0> : " ROWS "\n"
        "%%g = \"stablehlo.gather\"(%%w, %%n) <{dimension_numbers = "
        "#stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], "
        "start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, "
        "slice_sizes = array<i64: 1, 1, 1>}> : (" WIDE ", " ROWS ") -> tensor<2x3x1xf32>\n"
        "%s"
        "%%s = \"stablehlo.scatter\"(%%z, %%i, %%u) <{scatter_dimension_numbers = "
        "#stablehlo.scatter<%s>}> ({\n"
        "^bb0(%%p: tensor<f32>, %%q: tensor<f32>):\n%s"
        "}) : (" WIDE ", %s, %s) -> " WIDE "\n"
        "%%a = stablehlo.add %%w, %%s : " WIDE "\nreturn %%g, %%a : tensor<2x3x1xf32>, " WIDE
        "\n}\n",
        into, dims, body, indices, updates);
    return text;
}

/* The loss of logits and labels, and its gradient, as a text has them: one is looked up of each row, and one put into zeros. */
#define LOGITS "tensor<6x37xf32>"
#define ROW "tensor<6xf32>"
static const char entropy[] =
    "func.func public @main(%x: " LOGITS ", %i: tensor<6x1xi32>, %g: " ROW ") -> (" ROW ", " LOGITS
    ") {\n"
    "%ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "%nil = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%most = stablehlo.reduce(%x init: %ninf) applies stablehlo.maximum across dimensions = [1] : "
    "(" LOGITS ", tensor<f32>) -> " ROW "\n"
    "%mosts = stablehlo.broadcast_in_dim %most, dims = [0] : (" ROW ") -> " LOGITS "\n"
    "%less = stablehlo.subtract %x, %mosts : " LOGITS "\n"
    "%e = stablehlo.exponential %less : " LOGITS "\n"
    "%sum = stablehlo.reduce(%e init: %nil) applies stablehlo.add across dimensions = [1] : "
    "(" LOGITS ", tensor<f32>) -> " ROW "\n"
    "%log = stablehlo.log %sum : " ROW "\n%all = stablehlo.add %log, %most : " ROW "\n"
    "%one = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = #stablehlo.gather<"
    "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], "
    "start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (" LOGITS
    ", tensor<6x1xi32>) -> " ROW "\n"
    "%loss = stablehlo.subtract %all, %one : " ROW "\n"
    "%z = stablehlo.constant dense<0.0> : " LOGITS "\n"
    "%down = stablehlo.negate %g : " ROW "\n"
    "%put = \"stablehlo.scatter\"(%z, %i, %down) <{scatter_dimension_numbers = "
    "#stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], "
    "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = "
    "1>}> ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%r = stablehlo.add %p, %q : tensor<f32>\n"
    "stablehlo.return %r : tensor<f32>\n}) : (" LOGITS ", tensor<6x1xi32>, " ROW ") -> " LOGITS "\n"
    "%share = stablehlo.divide %g, %sum : " ROW "\n"
    "%shares = stablehlo.broadcast_in_dim %share, dims = [0] : (" ROW ") -> " LOGITS "\n"
    "%soft = stablehlo.multiply %shares, %e : " LOGITS "\n"
    "%d = stablehlo.add %put, %soft : " LOGITS "\n"
    "return %loss, %d : " ROW ", " LOGITS "\n}\n";

static int count_calls(const sf_program *p, const char *name)
{
    int count = 0;
    for (size_t i = 0; i < p->ninsts; i++)
        count +=
            p->insts[i].kind == SF_INST_CALL && strcmp(p->insts[i].call->op.def->name, name) == 0;
    return count;
}

static void test_which(void **state)
{
    (void)state;
    static const char zero[] = "%z = stablehlo.constant dense<0.5> : " WIDE "\n";
    static const char given[] = "%z = stablehlo.negate %o : " WIDE "\n";
    static const struct {
        const char *name, *into, *dims, *indices, *updates, *body;
        int scatters;
    } cases[] = {
        {"one a row", zero, DIMS, ROWS, "tensor<2x3x1xf32>",
         "%r = stablehlo.add %p, %q : tensor<f32>\nstablehlo.return %r : tensor<f32>\n", 0},
        {"over what was there", zero, DIMS, ROWS, "tensor<2x3x1xf32>",
         "%r = stablehlo.add %q, %q : tensor<f32>\nstablehlo.return %r : tensor<f32>\n", 1},
        {"into a tensor", given, DIMS, ROWS, "tensor<2x3x1xf32>",
         "%r = stablehlo.add %p, %q : tensor<f32>\nstablehlo.return %r : tensor<f32>\n", 1},
        {"two a row", zero, DIMS, "tensor<2x3x2x1xi32>", "tensor<2x3x2xf32>",
         "%r = stablehlo.add %p, %q : tensor<f32>\nstablehlo.return %r : tensor<f32>\n", 1},
        {"largest", zero, DIMS, ROWS, "tensor<2x3x1xf32>",
         "%r = stablehlo.maximum %p, %q : tensor<f32>\nstablehlo.return %r : tensor<f32>\n", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_buf text = text_of(cases[i].into, cases[i].dims, cases[i].indices, cases[i].updates,
                              cases[i].body);
        sf_program *p = test_lower_text(text.text, NULL);
        if (count_calls(p, "scatter") != cases[i].scatters)
            fail_msg("%s: %d scatters", cases[i].name, count_calls(p, "scatter"));
        for (size_t n = 0; n < p->ninsts; n++)
            if (p->insts[n].kind == SF_INST_CALL && p->insts[n].call->op.in[0]->dtype == SF_F32)
                assert_int_equal(cases[i].scatters, 1); /* the gather takes bf16 */
        sf_program_free(p);
        sf_buf_free(&text);
    }
}

/* Indices below, in and beyond the row: those that do not fit put nothing. */
static void test_numbers(void **state)
{
    (void)state;
    static const int32_t at[B * T] = {0, V - 1, -1, V, 17, 5};
    for (int overwrites = 0; overwrites < 2; overwrites++) {
        sf_buf text = text_of(
            "%z = stablehlo.constant dense<0.5> : " WIDE "\n", DIMS, ROWS, "tensor<2x3x1xf32>",
            overwrites
                ? "stablehlo.return %q : tensor<f32>\n"
                : "%r = stablehlo.add %p, %q : tensor<f32>\nstablehlo.return %r : tensor<f32>\n");
        sf_graph *graph = NULL;
        sf_diag *diag = sf_diag_new();
        assert_int_equal(sf_load_text(text.text, text.length, "picks", NULL, diag, &graph), SF_OK);
        sf_runner runner = test_open_engine(graph, "cpu", 1, NULL);
        uint16_t *x = test_argument(runner.engine, 0).data;
        for (int n = 0; n < B * T * V; n++)
            x[n] = (uint16_t)(0x3f80 + n % 64);
        memcpy(test_argument(runner.engine, 1).data, at, sizeof at);
        for (int n = 0; n < B * T; n++)
            ((float *)test_argument(runner.engine, 2).data)[n] = (float)n + 0.25F;
        assert_int_equal(sf_engine_step(runner.engine, diag), SF_OK);
        const float *taken = test_result(runner.engine, 0).data,
                    *sums = test_result(runner.engine, 1).data;
        for (int row = 0; row < B * T; row++)
            for (int v = 0; v < V; v++) {
                uint32_t bits = (uint32_t)(0x3f80 + (row * V + v) % 64) << 16;
                float value, update = (float)row + 0.25F;
                memcpy(&value, &bits, sizeof value);
                float put = v != at[row] ? 0.5F : overwrites ? update : 0.5F + update;
                assert_true(sums[row * V + v] == value + put);
                if (v == 0)
                    assert_true(taken[row] == value);
            }
        sf_runner_close(&runner);
        sf_graph_free(graph);
        sf_diag_free(diag);
        sf_buf_free(&text);
    }
}

static void fill_entropy(const sf_runner *runner)
{
    sf_tensor x = test_argument(runner->engine, 0), labels = test_argument(runner->engine, 1),
              g = test_argument(runner->engine, 2);
    for (int64_t i = 0; i < x.type->count; i++)
        sf_store_f64(SF_F32, x.data, i, (double)(i * 7919 % 997) / 100 - 5);
    static const int64_t at[] = {0, 36, 5, 17, 1, 30};
    for (int64_t i = 0; i < labels.type->count; i++)
        sf_store_i64(SF_S32, labels.data, i, at[i]);
    for (int64_t i = 0; i < g.type->count; i++)
        sf_store_f64(SF_F32, g.data, i, 0.1 * (double)(i + 1));
}

/* Cross entropy: the engine gives the oracle's results, with the gradient in one loop without a
 * scatter. */
static void test_entropy(void **state)
{
    (void)state;
    sf_graph *graph;
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_load_text(entropy, strlen(entropy), "step", NULL, diag, &graph), SF_OK);
    sf_runner runners[2] = {test_open_engine(graph, "oracle", 1, NULL),
                            test_open_engine(graph, "cpu", 2, NULL)};
    for (int r = 0; r < 2; r++) {
        fill_entropy(&runners[r]);
        assert_int_equal(sf_engine_step(runners[r].engine, diag), SF_OK);
    }
    assert_int_equal(count_calls(runners[1].program, "scatter"), 0);
    for (uint32_t k = 0; k < 2; k++) {
        sf_tensor wanted = test_result(runners[0].engine, k),
                  got = test_result(runners[1].engine, k);
        for (int64_t i = 0; i < wanted.type->count; i++)
            assert_true(fabs(sf_get_f64(&got, i) - sf_get_f64(&wanted, i)) <= 2e-6);
    }
    for (int r = 0; r < 2; r++)
        sf_runner_close(&runners[r]);
    sf_graph_free(graph);
    sf_diag_free(diag);
}

#define PRODUCT(left, right, dims, to)                                                             \
    "func.func public @main(%x: tensor<" left ">, %y: tensor<" right ">) -> tensor<" to "> {\n"    \
    "%p = stablehlo.dot_general %x, %y, " dims " : (tensor<" left ">, tensor<" right               \
    ">) -> tensor<" to ">\nreturn %p : tensor<" to ">\n}\n"

/* Products of single numbers are arithmetic where passes count. */
static void test_arithmetic(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        bool few_passes;
        int dots;
    } cases[] = {
        {"batches alone",
         PRODUCT("4x3x5xf32", "5x4x3xf32",
                 "batching_dims = [0, 1] x [1, 2], contracting_dims = [2] x [0]", "4x3xf32"),
         true, 0},
        {"batches alone, where passes do not count",
         PRODUCT("4x3x5xf32", "5x4x3xf32",
                 "batching_dims = [0, 1] x [1, 2], contracting_dims = [2] x [0]", "4x3xf32"),
         false, 1},
        {"two sums, and a dimension of 1",
         PRODUCT("2x4x1x3xf32", "3x2x4xf32",
                 "batching_dims = [1] x [2], contracting_dims = [0, 3] x [1, 0]", "4x1xf32"),
         true, 0},
        {"doubles",
         PRODUCT("4x6xf64", "4x6xf64", "batching_dims = [0] x [0], contracting_dims = [1] x [1]",
                 "4xf64"),
         true, 0},
        {"narrow ones, summed in f32",
         PRODUCT("4x6xbf16", "4x6xbf16", "batching_dims = [0] x [0], contracting_dims = [1] x [1]",
                 "4xbf16"),
         true, 0},
        {"nothing to sum",
         PRODUCT("3x4x1xf32", "3x1x5xf32",
                 "batching_dims = [0] x [0], contracting_dims = [2] x [1]", "3x4x5xf32"),
         true, 0},
        {"no dimension that is summed",
         PRODUCT("4xf32", "5xf32", "contracting_dims = [] x []", "4x5xf32"), true, 0},
        {"a matrix",
         PRODUCT("3x4x2xf32", "3x2x5xf32",
                 "batching_dims = [0] x [0], contracting_dims = [2] x [1]", "3x4x5xf32"),
         true, 1},
        {"one number", PRODUCT("6xf32", "6xf32", "contracting_dims = [0] x [0]", "f32"), true, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_target target = sf_target_cpu;
        target.few_passes = cases[i].few_passes;
        sf_program *p = test_lower_text(cases[i].text, &target);
        int dots = 0;
        for (size_t n = 0; n < p->ninsts; n++)
            dots += p->insts[n].kind == SF_INST_DOT;
        if (dots + count_calls(p, "dot_general") != cases[i].dots)
            fail_msg("%s: %d products", cases[i].name, dots);
        sf_program_free(p);
        test_as_oracle(cases[i].text, &target, cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_which), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_entropy),
                                       cmocka_unit_test(test_arithmetic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
