/* Kernels that check (run/text/kernel_check.h): an instruction that reaches past its operand is named, whatever its kind and
 * whether it is launched alone or with others; and one that does not is not. The programs are right ones, of which a view is then
 * made smaller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "front/import.h"
#include "run/runner.h"
#include "support/emulate.h"

static const char *const steps[] = {
    /* a loop, by several elements a thread; */
    "func.func @main(%x: tensor<64x2048xf32>) -> tensor<64x2048xf32> {\n"
    "  %0 = stablehlo.exponential %x : tensor<64x2048xf32>\n"
    "  return %0 : tensor<64x2048xf32>\n}\n",
    /* rows that are folded; */
    "func.func @main(%x: tensor<64x300xf32>) -> tensor<64xf32> {\n"
    "  %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : "
    "(tensor<64x300xf32>, tensor<f32>) -> tensor<64xf32>\n"
    "  return %0 : tensor<64xf32>\n}\n",
    /* columns; */
    "func.func @main(%x: tensor<640x30xf16>) -> tensor<30xf16> {\n"
    "  %c = stablehlo.constant dense<0.0> : tensor<f16>\n"
    "  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] : "
    "(tensor<640x30xf16>, tensor<f16>) -> tensor<30xf16>\n"
    "  return %0 : tensor<30xf16>\n}\n",
    /* a call; */
    "func.func @main(%x: tensor<64x30xf32>) -> tensor<64x30xf32> {\n"
    "  %0 = \"stablehlo.sort\"(%x) <{dimension = 1 : i64, is_stable = true}> ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "    %1 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    "    stablehlo.return %1 : tensor<i1>\n"
    "  }) : (tensor<64x30xf32>) -> tensor<64x30xf32>\n"
    "  return %0 : tensor<64x30xf32>\n}\n",
    /* and two loops that are launched as one. */
    "func.func @main(%x: tensor<30xf32>, %y: tensor<30xf32>) -> (tensor<30xf32>, tensor<30xf32>) "
    "{\n"
    "  %0 = stablehlo.exponential %x : tensor<30xf32>\n"
    "  %1 = stablehlo.exponential %y : tensor<30xf32>\n"
    "  return %0, %1 : tensor<30xf32>, tensor<30xf32>\n}\n",
};
enum { NSTEPS = sizeof steps / sizeof *steps };

/* The last instruction's first operand loses its last row. */
static sf_status shorten(void *context, sf_program *program, sf_diag *diag)
{
    const bool *shortens = context;
    (void)diag;
    if (*shortens)
        program->insts[program->ninsts - 1].in[0].dims[0]--;
    return SF_OK;
}

static void run_step(const char *text, bool shortens)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    sf_load_options load = {.size = sizeof load, .state = "none"};
    if (sf_load_text(text, strlen(text), "case", &load, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_runner runner = {0};
    sf_runner_options options = {.engine = "cuda", .rewrite = shorten, .context = &shortens};
    if (sf_runner_open(graph, &options, diag, &runner) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    bool goes_on;
    sf_status status = sf_engine_start(runner.engine, diag, &goes_on);
    if (shortens) {
        const char *said = sf_diag_text(diag, 0);
        char where[64];
        snprintf(where, sizeof where, "of instruction %zu (", runner.program->ninsts - 1);
        if (status != SF_EMISMATCH || !said)
            fail_msg("this passes: %s", text);
        if (!strstr(said, where) || !strstr(said, "of operand 0, "))
            fail_msg("'%s' does not say '%s'", said, where);
    } else if (status != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_runner_close(&runner);
    sf_graph_free(graph);
    sf_diag_free(diag);
}

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < NSTEPS; i++) {
        run_step(steps[i], false);
        run_step(steps[i], true);
    }
}

int main(void)
{
    test_emulate_gpu();
    setenv("SHEAF_CUDA_CHECK", "1", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
