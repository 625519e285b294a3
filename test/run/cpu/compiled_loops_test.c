/* Loops that the compiler of the system has made into machine code, against the same loops run step by step: the same bits, but for
 * those of a NaN. Random instances of every op that loops compute, then whole steps. */
#include "run/cpu/compiled_loops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ir/print_graph.h"
#include "op/op.h"
#include "op/util.h"
#include "support/draw.h"
#include "support/run.h"
#include "support/sanitized.h"

enum { CASES = 6, MOST_ELEMENTS = 3000, STEPS = 2 };

static void want(const char *compiler)
{
    setenv("SHEAF_COMPILER", compiler, 1);
}

static int find_compiler(void **state)
{
    static char folder[] = "/tmp/sheaf-native-XXXXXX";
    (void)state;
    const char *cc = getenv("CC");
    char command[400];
    snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", cc && *cc ? cc : "cc");
    if (system(command) != 0 || !mkdtemp(folder))
        return 1;
    setenv("XDG_CACHE_HOME", folder, 1);
    return 0;
}

static int remove_cache(void **state)
{
    (void)state;
    char command[400];
    snprintf(command, sizeof command, "rm -r '%s'", getenv("XDG_CACHE_HOME"));
    return system(command);
}

/* Ops that stand in loops: arithmetic on elements, and reductions. */
static bool is_of_loops(sf_opcode op)
{
    return test_can_draw(op) &&
           (sf_opdef_get(op)->factors == sf_factors_pointwise || op == SF_OP_REDUCE);
}

static sf_graph *draw_graph(test_case *c, sf_opcode op, uint32_t seed)
{
    sf_buf text = {0};
    sf_graph *graph = NULL;
    sf_load_options load = {.size = sizeof load, .state = "none"};
    test_case_draw(c, op, seed, false, MOST_ELEMENTS);
    sf_print_stablehlo(c->graph, &text);
    if (sf_load_text(text.text, text.length, "case", &load, NULL, &graph) != SF_OK)
        fail_msg("%s, seed %u: the text is refused", sf_opdef_get(op)->name, seed);
    sf_buf_free(&text);
    return graph;
}

/* The loops of all cases, compiled together. */
static void compile_cases(void)
{
    sf_kernels module = {0};
    sf_natives natives = {0};
    sf_diag *diag = sf_diag_new();
    want("cc");
    for (int op = 0; op < SF_OP_COUNT; op++)
        for (uint32_t seed = 0; seed < (uint32_t)test_rounds(CASES) && is_of_loops((sf_opcode)op);
             seed++) {
            test_case c;
            sf_graph *graph = draw_graph(&c, (sf_opcode)op, seed);
            sf_program *program = test_lower(graph);
            sf_natives_write(&natives, &module, program);
            sf_program_free(program);
            sf_graph_free(graph);
            test_case_free(&c);
        }
    assert_true(module.nkernels > (test_short() ? 30 : 100));
    if (sf_natives_load(&module, diag) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    sf_natives_free(&natives);
    sf_kernels_free(&module);
}

static bool is_nan_at(const sf_tensor *t, int64_t i)
{
    return sf_is_float(t->type->dtype) && isnan(sf_get_f64(t, i));
}

static void hold_same(const char *what, const sf_graph *graph, sf_runner *ours, sf_runner *plain)
{
    for (uint32_t r = 0; r < graph->top->nresults; r++) {
        sf_tensor a = test_result(ours->engine, r), b = test_result(plain->engine, r);
        int64_t width = sf_dtype_get(a.type->dtype)->bytes;
        for (int64_t i = 0; i < a.type->count; i++)
            if (memcmp((char *)a.data + i * width, (char *)b.data + i * width, (size_t)width) !=
                    0 &&
                !(is_nan_at(&a, i) && is_nan_at(&b, i)))
                fail_msg("%s: result %u, element %d: %.17g, and %.17g step by step", what, r,
                         (int)i, sf_get_f64(&a, i), sf_get_f64(&b, i));
    }
}

/* A graph on both, from the same arguments; those are of a case, or small numbers. */
static void run_both(const char *what, const sf_graph *graph, test_case *c, int threads)
{
    want("vm");
    sf_runner plain = test_open_engine(graph, NULL, threads, NULL);
    want("cc");
    sf_runner ours = test_open_engine(graph, NULL, threads, NULL);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_tensor to = test_argument(ours.engine, i), from = test_argument(plain.engine, i);
        test_case_fill(c, i % TEST_MOST_ARGUMENTS, from);
        if (from.type->count > 0)
            memcpy(to.data, from.data, (size_t)sf_type_bytes(from.type));
    }
    for (int step = 0; step < STEPS; step++) {
        assert_int_equal(sf_engine_step(plain.engine, NULL), SF_OK);
        assert_int_equal(sf_engine_step(ours.engine, NULL), SF_OK);
        hold_same(what, graph, &ours, &plain);
    }
    sf_runner_close(&plain);
    sf_runner_close(&ours);
}

static void test_ops(void **state)
{
    (void)state;
    compile_cases();
    for (int op = 0; op < SF_OP_COUNT; op++)
        for (uint32_t seed = 0; seed < (uint32_t)test_rounds(CASES) && is_of_loops((sf_opcode)op);
             seed++) {
            test_case c;
            char what[64];
            sf_graph *graph = draw_graph(&c, (sf_opcode)op, seed);
            snprintf(what, sizeof what, "%s, seed %u", sf_opdef_get((sf_opcode)op)->name, seed);
            run_both(what, graph, &c, 1 + (int)(seed % 2));
            sf_graph_free(graph);
            test_case_free(&c);
        }
}

static sf_graph *load_micro(void)
{
    char path[1000];
    sf_graph *graph = NULL;
    snprintf(path, sizeof path, "%s/examples/gpt-micro.stablehlo.mlir", getenv("SHEAF_SOURCE"));
    assert_int_equal(sf_load(path, NULL, NULL, &graph), SF_OK);
    return graph;
}

/* Products with epilogues, sums over tiles, updates in place. */
static void test_step(void **state)
{
    (void)state;
    test_case c = {.random = {.key = 7}};
    for (int i = 0; i < TEST_MOST_ARGUMENTS; i++)
        c.ranges[i] = test_small;
    sf_graph *graph = load_micro();
    for (int threads = 1; threads <= 2; threads++)
        run_both("gpt-micro", graph, &c, threads);
    sf_graph_free(graph);
}

/* Available compilers, and missing ones. */
static void open_micro(const char *compiler, sf_status expected, const char *says)
{
    sf_graph *graph = load_micro();
    sf_diag *diag = sf_diag_new();
    sf_runner runner = {0};
    sf_runner_options options = {.with = {.threads = 1}};
    want(compiler);
    assert_int_equal(sf_runner_open(graph, &options, diag, &runner), expected);
    bool said = false;
    for (int i = 0; sf_diag_text(diag, i); i++)
        said = said || strstr(sf_diag_text(diag, i), says);
    if (!said)
        fail_msg("nothing is said of \"%s\"", says);
    sf_runner_close(&runner);
    sf_diag_free(diag);
    sf_graph_free(graph);
}

static void test_without(void **state)
{
    (void)state;
    open_micro("tcc", SF_EUSAGE, "SHEAF_COMPILER is \"cc\" or \"vm\", not \"tcc\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_without),
    };
    return cmocka_run_group_tests(tests, find_compiler, remove_cache);
}
