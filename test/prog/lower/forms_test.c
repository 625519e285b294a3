/* One element of each row: which gathers and scatters become loops, and that loops then compute what the text says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
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

/* %x is taken from at %i, and %u is put there, into what `into` says. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_which),
                                       cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
