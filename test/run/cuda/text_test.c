/* The text of kernels, without a GPU: NVRTC compiles all of it for one, equal texts are one kernel, and an engine that
 * finds no GPU says so in a line. What the text computes is held against the oracle by run/cpu/device_test.c, which the
 * test run/cuda/device runs on the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "front/import.h"
#include "ir/print_graph.h"
#include "run/cuda/cuda_device.h"
#include "run/cuda/cuda_target.h"
#include "run/runner.h"
#include "support/draw.h"
#include "support/nvrtc.h"
#include "support/run.h"
#include "support/sanitized.h"

enum { CASES = 3, TOGETHER = 400 };

static sf_program *lower_for_cuda(const sf_graph *graph)
{
    sf_lower_options options = {.target = &sf_target_cuda};
    return sf_lower_as_text(graph, &options);
}

/* A step of test/data or examples. */
static sf_graph *load_step(const char *path)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    sf_load_options options = {.size = sizeof options};
    if (sf_load(path, &options, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

/* What is found without writing all kernels is what they work in. */
static void check_scratch(const sf_program *program)
{
    sf_kernels all = {0};
    int64_t most = sf_write_program(&all, program, true);
    assert_int_equal(sf_cuda_scratch(program), most);
    sf_kernels_free(&all);
}

static void add_step(sf_kernels *kernels, const char *path)
{
    sf_graph *graph = load_step(path);
    sf_program *program = lower_for_cuda(graph);
    sf_write_program(kernels, program, false);
    check_scratch(program);
    sf_program_free(program);
    sf_graph_free(graph);
}

static void add_op(sf_kernels *kernels, sf_opcode op, uint32_t seed)
{
    test_case c;
    test_case_draw(&c, op, seed, false, 0);
    sf_program *program = lower_for_cuda(c.graph);
    sf_write_program(kernels, program, false);
    check_scratch(program);
    sf_program_free(program);
    test_case_free(&c);
}

/* With a state, that of kernels that check (run/text/kernel_check.h). Short is: of these, those of a step. */
static void test_all_text(void **state)
{
    const sf_cuda_compiler *compiler = test_nvrtc();
    if (!compiler) {
        print_message("NVRTC is not here\n");
        skip();
    }
    sf_kernels kernels = {.needs = {.checks = *state != NULL}};
    add_step(&kernels, "examples/gpt-micro.stablehlo.mlir");
    int cases = test_rounds(CASES);
    if (test_short() && *state)
        cases = 0;
    for (int op = 0; op < SF_OP_COUNT; op++)
        for (int seed = 0; seed < cases && test_can_draw((sf_opcode)op); seed++)
            add_op(&kernels, (sf_opcode)op, (uint32_t)seed);
    assert_true(kernels.nkernels > (cases > 0 ? 100 : 10));
    for (size_t i = 0; i < kernels.nkernels; i += TOGETHER) {
        size_t left = kernels.nkernels - i;
        test_nvrtc_compile(compiler, &kernels, i, left < TOGETHER ? left : TOGETHER, "sm_90");
    }
    sf_kernels_free(&kernels);
}

static size_t count_launches(const sf_program *p, sf_kernels *kernels)
{
    size_t count = 0;
    for (size_t i = 0; i < p->ninsts; i++) {
        sf_code code = {0};
        const sf_inst *unknown = NULL;
        sf_write_inst(kernels, &kernels->arena, &p->insts[i], false, &code, &unknown);
        assert_null(unknown);
        count += code.nlaunches;
    }
    return count;
}

/* Layers do the same, so their kernels are the same. */
static void test_equal_texts(void **state)
{
    (void)state;
    sf_graph *graph = load_step("examples/gpt-micro.stablehlo.mlir");
    sf_program *program = lower_for_cuda(graph);
    sf_kernels kernels = {0};
    size_t launches = count_launches(program, &kernels), distinct = kernels.nkernels;
    assert_true(distinct < launches);
    assert_int_equal(count_launches(program, &kernels), launches);
    assert_int_equal(kernels.nkernels, distinct);
    sf_kernels_free(&kernels);
    sf_program_free(program);
    sf_graph_free(graph);
}

static void test_no_gpu(void **state)
{
    (void)state;
    if (sf_device_has_gpu()) {
        print_message("there is a GPU\n");
        skip();
    }
    sf_diag *diag = sf_diag_new();
    sf_device *device;
    assert_int_equal(sf_device_open_gpu(0, diag, &device), SF_EUNSUPPORTED);
    assert_non_null(strstr(sf_diag_text(diag, 0), "engine cuda needs "));
    sf_diag_free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_text),
        {"test_all_text with checks", test_all_text, NULL, NULL, (void *)"checks"},
        cmocka_unit_test(test_equal_texts),
        cmocka_unit_test(test_no_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
