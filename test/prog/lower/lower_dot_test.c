/* Products are written in the order in which a transpose wants them, so that nothing has to be copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/cpu/cpu_target.h"
#include "sheaf/graph.h"
#include "support/programs.h"
#include "support/run.h"

#define X "tensor<4x6x3x5xf32>"
#define W "tensor<4x7x3x5xf32>"
#define MAIN(result)                                                                               \
    "func.func public @main(%x: " X ", %w: " W ") -> " result " {\n"                               \
    "%p = stablehlo.dot_general %x, %w, batching_dims = [0, 2] x [0, 2], "                         \
    "contracting_dims = [3] x [3] : (" X ", " W ") -> tensor<4x3x6x7xf32>\n"

/* Copies are loops: how many instructions there are beside the product. */
static const struct {
    const char *name, *text;
    size_t others;
} cases[] = {
    {"as it is", MAIN("tensor<4x3x6x7xf32>") "return %p : tensor<4x3x6x7xf32>\n}\n", 0},
    {"columns before rows",
     MAIN("tensor<4x3x7x6xf32>") "%t = stablehlo.transpose %p, dims = [0, 1, 3, 2] : "
                                 "(tensor<4x3x6x7xf32>) -> "
                                 "tensor<4x3x7x6xf32>\n"
                                 "return %t : tensor<4x3x7x6xf32>\n}\n",
     0},
    {"heads side by side",
     MAIN("tensor<24x21xf32>") "%t = stablehlo.transpose %p, dims = [0, 2, 1, 3] : "
                               "(tensor<4x3x6x7xf32>) -> "
                               "tensor<4x6x3x7xf32>\n"
                               "%r = stablehlo.reshape %t : (tensor<4x6x3x7xf32>) -> "
                               "tensor<24x21xf32>\n"
                               "return %r : tensor<24x21xf32>\n}\n",
     0},
    {"batches last, which no product is written in",
     MAIN("tensor<7x6x3x4xf32>") "%t = stablehlo.transpose %p, dims = [3, 2, 1, 0] : "
                                 "(tensor<4x3x6x7xf32>) -> "
                                 "tensor<7x6x3x4xf32>\n"
                                 "return %t : tensor<7x6x3x4xf32>\n}\n",
     1},
    {"read twice, in two orders",
     MAIN("(tensor<4x3x7x6xf32>, tensor<4x6x3x7xf32>)") "%t = stablehlo.transpose %p, dims = [0, "
                                                        "1, 3, 2] : (tensor<4x3x6x7xf32>) -> "
                                                        "tensor<4x3x7x6xf32>\n"
                                                        "%u = stablehlo.transpose %p, dims = [0, "
                                                        "2, 1, 3] : (tensor<4x3x6x7xf32>) -> "
                                                        "tensor<4x6x3x7xf32>\n"
                                                        "return %t, %u : tensor<4x3x7x6xf32>, "
                                                        "tensor<4x6x3x7xf32>\n}\n",
     2},
};

static void test_copies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_diag *diag = sf_diag_new();
        sf_load_options load = {.size = sizeof load, .unroll = -1};
        sf_graph *graph;
        if (sf_load_text(cases[i].text, strlen(cases[i].text), "step", &load, diag, &graph) !=
            SF_OK)
            fail_msg("%s: %s", cases[i].name, sf_diag_text(diag, 0));
        sf_program *program = test_lower(graph);
        if (program->ninsts != 1 + cases[i].others)
            fail_msg("%s: %d instructions", cases[i].name, (int)program->ninsts);
        sf_program_free(program);
        sf_graph_free(graph);
        sf_diag_free(diag);
    }
}

#define T(dims, type) "tensor<" dims "x" type ">"
#define OVER_ROWS(name, a, b, more, type, ta, tb, tc)                                              \
    name " = stablehlo.dot_general " a ", " b ", contracting_dims = [0, 1] x [0, 1]" more          \
         " : (" T(ta, type) ", " T(tb, type) ") -> " T(tc, type) "\n"
#define GRADIENT(type, more)                                                                       \
    "func.func public @main(%x: " T("2x5x8", type) ", %d: " T("2x5x6", type) ") -> " T(            \
        "8x6", type) " {\n" OVER_ROWS("%p", "%x", "%d", more, type, "2x5x8", "2x5x6",              \
                                      "8x6") "return %p : " T("8x6", type) "\n}\n"

/* If units round, one factor has contiguous sums. */
static const struct {
    const char *name, *text;
    double from;          /* flops */
    size_t copies, apart; /* loops that copy, and products without contiguous sums */
} turns[] = {
    {"a gradient", GRADIENT("f32", ""), 1, 1, 0},
    {"one that is too small", GRADIENT("f32", ""), 2 * 10 * 8 * 6 + 1, 0, 1},
    {"exact", GRADIENT("f32", ", precision = [HIGHEST, HIGHEST]"), 1, 0, 1},
    {"doubles", GRADIENT("f64", ""), 1, 0, 1},
    {"no target that turns", GRADIENT("f32", ""), 0, 0, 1},
    {"forward",
     "func.func public @main(%x: tensor<2x5x8xf32>, %w: tensor<8x6xf32>) -> tensor<2x5x6xf32> {\n"
     "%p = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2x5x8xf32>, "
     "tensor<8x6xf32>) -> tensor<2x5x6xf32>\nreturn %p : tensor<2x5x6xf32>\n}\n",
     1, 0, 0},
    {"three that share the second, of which the last is small",
     "func.func public @main(%x: tensor<2x5x8xf32>, %q: tensor<2x5x8xf32>, %k: tensor<2x5x9xf32>, "
     "%v: "
     "tensor<2x5x2xf32>) -> (tensor<8x8xf32>, tensor<9x8xf32>, tensor<2x8xf32>) {\n" OVER_ROWS(
         "%a", "%q", "%x", "", "f32", "2x5x8", "2x5x8", "8x8")
         OVER_ROWS("%b", "%k", "%x", "", "f32", "2x5x9", "2x5x8", "9x8") OVER_ROWS(
             "%c", "%v", "%x", "", "f32", "2x5x2", "2x5x8",
             "2x8") "return %a, %b, %c : tensor<8x8xf32>, tensor<9x8xf32>, tensor<2x8xf32>\n}\n",
     2 * 10 * 8 * 8, 1, 0},
    {"batches between what is summed and what is not",
     "func.func public @main(%x: tensor<5x3x8xf32>, %d: tensor<5x3x6xf32>) -> tensor<3x8x6xf32> {\n"
     "%p = stablehlo.dot_general %x, %d, batching_dims = [1] x [1], contracting_dims = [0] x [0] : "
     "(tensor<5x3x8xf32>, tensor<5x3x6xf32>) -> tensor<3x8x6xf32>\n"
     "return %p : tensor<3x8x6xf32>\n}\n",
     1, 1, 0},
};

static void test_turns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        sf_target target = sf_target_cpu;
        target.rounds = true;
        target.transpose_flops = turns[i].from;
        sf_program *program = test_lower_text(turns[i].text, &target);
        size_t dots = 0, apart = 0;
        for (size_t j = 0; j < program->ninsts; j++)
            if (program->insts[j].kind == SF_INST_DOT) {
                const sf_dot *dot = program->insts[j].dot;
                dots++;
                apart += dot->a_column != 1 && dot->b_row != 1;
            }
        if (program->ninsts - dots != turns[i].copies || apart != turns[i].apart)
            fail_msg("%s: %d copies, %d products over what lies apart", turns[i].name,
                     (int)(program->ninsts - dots), (int)apart);
        sf_program_free(program);
        test_as_oracle(turns[i].text, &target, turns[i].name);
    }
}

#define BATCHED(left, right, dims, sums, to)                                                       \
    "func.func public @main(%x: tensor<" left "xf32>, %y: tensor<" right "xf32>) -> tensor<" to    \
    "xf32> {\n%p = stablehlo.dot_general %x, %y, batching_dims = " dims                            \
    ", contracting_dims = " sums " : (tensor<" left "xf32>, tensor<" right "xf32>) -> tensor<" to  \
    "xf32>\nreturn %p : tensor<" to "xf32>\n}\n"

/* A library takes batches one stride apart in a call. */
static const struct {
    const char *name, *text;
    double call_bytes;
    size_t copies;
    int64_t calls;
} joins[] = {
    {"heads beside rows", BATCHED("3x4x2x8", "3x5x2x8", "[0, 2] x [0, 2]", "[3] x [3]", "3x2x4x5"),
     1e6, 2, 1},
    {"calls that take less than copies",
     BATCHED("3x4x2x8", "3x5x2x8", "[0, 2] x [0, 2]", "[3] x [3]", "3x2x4x5"), 8, 0, 3},
    {"one of them lies so",
     BATCHED("3x2x4x8", "3x5x2x8", "[0, 1] x [0, 2]", "[3] x [3]", "3x2x4x5"), 1e6, 1, 1},
    {"strides do not matter",
     BATCHED("3x4x2x8", "3x5x2x8", "[0, 2] x [0, 2]", "[3] x [3]", "3x2x4x5"), 0, 0, 3},
    {"batches side by side", BATCHED("4x6x3", "5x6x3", "[2] x [2]", "[1] x [1]", "3x4x5"), 1, 2, 1},
    {"batches side by side, strides do not matter",
     BATCHED("4x6x3", "5x6x3", "[2] x [2]", "[1] x [1]", "3x4x5"), 0, 0, 1},
    {"rows side by side", BATCHED("3x6x4", "3x5x6", "[0] x [0]", "[1] x [2]", "3x4x5"), 1e6, 0, 1},
    {"a result that is turned would take more calls",
     "func.func public @main(%x: tensor<3x2x4x5xf32>, %y: tensor<3x2x5x8xf32>) -> "
     "tensor<3x4x2x8xf32> {\n"
     "%p = stablehlo.dot_general %x, %y, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x "
     "[2] : (tensor<3x2x4x5xf32>, tensor<3x2x5x8xf32>) -> tensor<3x2x4x8xf32>\n"
     "%t = stablehlo.transpose %p, dims = [0, 2, 1, 3] : (tensor<3x2x4x8xf32>) -> "
     "tensor<3x4x2x8xf32>\nreturn %t : tensor<3x4x2x8xf32>\n}\n",
     1e6, 1, 1},
};

static void test_joins(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        sf_target target = sf_target_cpu;
        target.call_bytes = joins[i].call_bytes;
        sf_program *program = test_lower_text(joins[i].text, &target);
        size_t dots = 0;
        int64_t calls = 1, together;
        for (size_t j = 0; j < program->ninsts; j++) {
            const sf_dot *dot = program->insts[j].dot;
            if (program->insts[j].kind != SF_INST_DOT)
                continue;
            dots++;
            for (int d = 0; d < sf_dot_inner_batches(dot, &together); d++)
                calls *= dot->batch[d];
        }
        if (program->ninsts - dots != joins[i].copies || calls != joins[i].calls)
            fail_msg("%s: %d copies, %d calls", joins[i].name, (int)(program->ninsts - dots),
                     (int)calls);
        sf_program_free(program);
        test_as_oracle(joins[i].text, &target, joins[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies), cmocka_unit_test(test_turns),
                                       cmocka_unit_test(test_joins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
