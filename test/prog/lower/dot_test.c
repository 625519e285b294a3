/* Products are written in the order in which a transpose wants them, so that nothing has to be copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sheaf/graph.h"
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
        sf_load_options load = {.unroll = -1};
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
