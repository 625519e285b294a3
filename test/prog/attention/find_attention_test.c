/* Attention is found in any spelling, forward and backward, and only if it is attention; the
 * kernels of the engines give the oracle's results for the text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "op/attention.h"
#include "prog/attention/find_attention.h"
#include "prog/check_program.h"
#include "run/cpu/cpu_target.h"
#include "run/cuda/cuda_target.h"
#include "run/mixed_precision.h"
#include "sheaf/sheaf.h"
#include "support/emulate.h"
#include "support/plans.h"
#include "support/run.h"

#define T "tensor<2x20x3x16xbf16>"
#define S "tensor<2x3x20x20xbf16>"
#define R "tensor<2x3x20xbf16>"

/* The parts of a text: scale, mask, weights. */
#define MULTIPLIED                                                                                 \
    "%c = stablehlo.constant dense<0.25> : " S "\n%y = stablehlo.multiply %c, %s : " S "\n"
#define DIVIDED "%c = stablehlo.constant dense<4.0> : " S "\n%y = stablehlo.divide %s, %c : " S "\n"
#define HIDDEN(direction)                                                                          \
    "%i = stablehlo.iota dim = 0 : tensor<20x20xi32>\n%j = stablehlo.iota dim = 1 : "              \
    "tensor<20x20xi32>\n"                                                                          \
    "%m = stablehlo.compare " direction                                                            \
    ", %i, %j : (tensor<20x20xi32>, tensor<20x20xi32>) -> tensor<20x20xi1>\n"                      \
    "%n = stablehlo.broadcast_in_dim %m, dims = [2, 3] : (tensor<20x20xi1>) -> "                   \
    "tensor<2x3x20x20xi1>\n"                                                                       \
    "%low = stablehlo.constant dense<-1.0e9> : " S "\n"                                            \
    "%x = stablehlo.select %n, %y, %low : tensor<2x3x20x20xi1>, " S "\n"
/* Counted from 2 on, as on a rank with later places, and cut out of more, of which the last are
 * taken. */
#define HIDDEN_BY(places, direction)                                                               \
    places "%m = stablehlo.compare " direction                                                     \
           ", %i, %j : (tensor<20x20xi32>, tensor<20x20xi32>) -> tensor<20x20xi1>\n"               \
           "%n = stablehlo.broadcast_in_dim %m, dims = [2, 3] : (tensor<20x20xi1>) -> "            \
           "tensor<2x3x20x20xi1>\n"                                                                \
           "%low = stablehlo.constant dense<-1.0e9> : " S "\n"                                     \
           "%x = stablehlo.select %n, %y, %low : tensor<2x3x20x20xi1>, " S "\n"
#define COUNTED(first)                                                                             \
    "%i0 = stablehlo.iota dim = 0 : tensor<20x20xi32>\n%j = stablehlo.iota dim = 1 : "             \
    "tensor<20x20xi32>\n%two = stablehlo.constant dense<" first                                    \
    "> : tensor<20x20xi32>\n%i = stablehlo.add %two, %i0 : tensor<20x20xi32>\n"
#define CUT(from, to)                                                                              \
    "%all = stablehlo.iota dim = 0 : tensor<60xi32>\n%parts = stablehlo.reshape %all : "           \
    "(tensor<60xi32>) -> tensor<3x20xi32>\n%one = stablehlo.slice %parts [" from ":" to            \
    ", 0:20] : (tensor<3x20xi32>) -> tensor<1x20xi32>\n%mine = stablehlo.reshape %one : "          \
    "(tensor<1x20xi32>) -> tensor<20xi32>\n%i = stablehlo.broadcast_in_dim %mine, dims = [0] : "   \
    "(tensor<20xi32>) -> tensor<20x20xi32>\n%j = stablehlo.iota dim = 1 : tensor<20x20xi32>\n"
#define TEXT(scale, mask)                                                                          \
    "func.func public @main(%q: " T ", %k: " T ", %v: " T ") -> tensor<2x3x16x20xbf16> {\n"        \
    "%s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] "  \
    "x [3] : (" T ", " T ") -> " S "\n" scale mask                                                 \
    "%ninf = stablehlo.constant dense<0xFF80> : tensor<bf16>\n%nil = stablehlo.constant "          \
    "dense<0.0> : tensor<bf16>\n"                                                                  \
    "%top = stablehlo.reduce(%x init: %ninf) applies stablehlo.maximum across dimensions = [3] : " \
    "(" S ", tensor<bf16>) -> " R "\n"                                                             \
    "%tops = stablehlo.broadcast_in_dim %top, dims = [0, 1, 2] : (" R ") -> " S "\n"               \
    "%less = stablehlo.subtract %x, %tops : " S "\n%e = stablehlo.exponential %less : " S "\n"     \
    "%sum = stablehlo.reduce(%e init: %nil) applies stablehlo.add across dimensions = [3] : (" S   \
    ", tensor<bf16>) -> " R "\n"                                                                   \
    "%sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (" R ") -> " S "\n"               \
    "%p = stablehlo.divide %e, %sums : " S "\n"                                                    \
    "%o = stablehlo.dot_general %v, %p, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] "  \
    "x [3] : (" T ", " S ") -> tensor<2x3x16x20xbf16>\nreturn %o : tensor<2x3x16x20xbf16>\n}\n"

static const struct {
    const char *name, *text;
    int found;
} cases[] = {
    {"scaled by a product, causal", TEXT(MULTIPLIED, HIDDEN("GE")), 1},
    {"scaled by a quotient, causal", TEXT(DIVIDED, HIDDEN("GE")), 1},
    {"a mask of another kind", TEXT(DIVIDED, HIDDEN("GT")), 0},
    {"later places alone", TEXT(DIVIDED, HIDDEN("LE")), 0},
    {"places from 2 on", TEXT(DIVIDED, HIDDEN_BY(COUNTED("2"), "GE")), 1},
    {"places from 2 on, without their own", TEXT(DIVIDED, HIDDEN_BY(COUNTED("2"), "GT")), 1},
    {"places from -1 on, of which one sees none", TEXT(DIVIDED, HIDDEN_BY(COUNTED("-1"), "GE")), 0},
    {"the first third of places", TEXT(DIVIDED, HIDDEN_BY(CUT("0", "1"), "GE")), 1},
    {"the second third of places", TEXT(DIVIDED, HIDDEN_BY(CUT("1", "2"), "GE")), 1},
};
enum { NCASES = sizeof cases / sizeof *cases };

static sf_graph *read_text(const char *text)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    sf_load_options options = {.size = sizeof options};
    if (sf_load_text(text, strlen(text), "step", &options, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

static int count_ops(const sf_graph *graph, int id)
{
    int count = 0;
    for (uint32_t i = 0; graph && i < graph->top->nnodes; i++)
        count += sf_top_node(graph, i)->def->id == id;
    return count;
}

static void test_finds_attention(void **state)
{
    (void)state;
    for (size_t i = 0; i < NCASES; i++) {
        sf_graph *graph = read_text(cases[i].text);
        graph->kernels = SF_KERNELS_ALL;
        sf_regraph fused = sf_find_attention(graph, &sf_target_cpu, false, false);
        if (count_ops(fused.graph, SF_ATTENTION) != cases[i].found)
            fail_msg("%s: %d found", cases[i].name, count_ops(fused.graph, SF_ATTENTION));
        sf_regraph_free(&fused);
        sf_graph_free(graph);
    }
}

/* Products of f32 are rounded on tensor cores, so only on request. */
static void test_asks_for_rounding(void **state)
{
    (void)state;
    static const struct {
        sf_attending what;
        bool has;
    } rows[] = {{{.dtype = SF_BF16, .depth = 128}, true},
                {{.dtype = SF_BF16, .depth = 144}, false},
                {{.dtype = SF_F32, .depth = 64, .rounds = true}, true},
                {{.dtype = SF_F32, .depth = 64}, false},
                {{.dtype = SF_F32, .depth = 128, .rounds = true}, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(sf_target_cuda.attends(&rows[i].what), rows[i].has);
}

static bool attends_all(const sf_attending *what)
{
    (void)what;
    return true;
}

static sf_graph *load_example(void)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    sf_load_options options = {.size = sizeof options};
    assert_int_equal(sf_load("examples/gpt-micro.stablehlo.mlir", &options, diag, &graph), SF_OK);
    sf_diag_free(diag);
    return graph;
}

/* Every layer of a step of training, and nothing of its scores is left. */
static void test_finds_gradients(void **state)
{
    (void)state;
    sf_target target = sf_target_cuda;
    target.attends = attends_all;
    sf_graph *graph = load_example();
    sf_regraph found = sf_find_attention(graph, &target, false, false);
    const sf_graph *fused = found.graph;
    assert_int_equal(count_ops(fused, SF_ATTENTION), 2);
    assert_int_equal(count_ops(fused, SF_ATTENTION_GRADIENT), 2);
    assert_int_equal(count_ops(graph, SF_OP_EXPONENTIAL) - count_ops(fused, SF_OP_EXPONENTIAL), 2);
    assert_int_equal(count_ops(graph, SF_OP_DOT_GENERAL) - count_ops(fused, SF_OP_DOT_GENERAL), 12);
    sf_regraph_free(&found);
    sf_graph_free(graph);
}

/* Where the step is narrowed, factors are rounded one by one, and f32 comes out: only who may round that as well has kernels. */
static void test_finds_narrowed(void **state)
{
    (void)state;
    sf_target target = sf_target_cuda;
    target.attends = attends_all;
    sf_graph *graph = load_example();
    sf_graph *narrowed = sf_narrow_products(graph, SF_PRECISION_BF16, false);
    for (int narrows = 0; narrows < 2; narrows++) {
        sf_regraph found = sf_find_attention(narrowed, &target, false, narrows);
        assert_int_equal(count_ops(found.graph, SF_ATTENTION), 2 * narrows);
        assert_int_equal(count_ops(found.graph, SF_ATTENTION_GRADIENT), 2 * narrows);
        sf_regraph_free(&found);
    }
    sf_graph_free(narrowed);
    sf_graph_free(graph);
}

static void fill(sf_tensor *tensor, uint32_t seed)
{
    for (int64_t i = 0; i < tensor->type->count; i++) {
        seed = seed * 1664525 + 1013904223;
        float x = (float)(seed >> 8) / 8388608.0F - 1;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        ((uint16_t *)tensor->data)[i] = (uint16_t)(bits >> 16);
    }
}

/* The results of an engine for the text, with kernels if there are some, and those of the
 * oracle. */
static void compare_text(const char *name, const char *text, const char *engine)
{
    sf_graph *graph = read_text(text);
    graph->kernels = SF_KERNELS_ALL;
    sf_runner runners[2] = {test_open_engine(graph, "oracle", 1, NULL),
                            test_open_engine(graph, engine, 1, NULL)};
    sf_diag *diag = sf_diag_new();
    for (int r = 0; r < 2; r++) {
        for (uint32_t a = 0; a < graph->top->narguments; a++) {
            sf_tensor tensor = test_argument(runners[r].engine, a);
            fill(&tensor, a + 1);
        }
        assert_int_equal(sf_engine_step(runners[r].engine, diag), SF_OK);
    }
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        sf_tensor wanted = test_result(runners[0].engine, i),
                  got = test_result(runners[1].engine, i);
        for (int64_t e = 0; e < wanted.type->count; e++)
            if (!(fabs(sf_get_f64(&wanted, e) - sf_get_f64(&got, e)) <= 0.02))
                fail_msg("%s, %s: element %d is %g, not %g", name, engine, (int)e,
                         sf_get_f64(&got, e), sf_get_f64(&wanted, e));
    }
    for (int r = 0; r < 2; r++)
        sf_runner_close(&runners[r]);
    sf_diag_free(diag);
    sf_graph_free(graph);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 16);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static int count_calls(const sf_program *program, int id)
{
    int count = 0;
    for (size_t i = 0; i < program->ninsts; i++)
        count += program->insts[i].kind == SF_INST_CALL && program->insts[i].call->op.def->id == id;
    return count;
}

/* A step of jax.nn.dot_product_attention: five dimensions, a group of 1, scores of f32, and products that ask for operands of
 * bf16. All of it is found, no product is left to a plain kernel, and the results are the oracle's. */
static void find_attention_of_jax(const char *file)
{
    const sf_target *targets[] = {&sf_target_cpu, &sf_target_cuda};
    char *text = read_file(file);
    sf_graph *graph = read_text(text);
    graph->kernels = SF_KERNELS_ALL;
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        sf_program *program = sf_lower(graph, &(sf_lower_options){.target = targets[t]}, NULL);
        bool rounds =
            targets[t] == &sf_target_cuda; /* else the scores are as exact as the text says */
        assert_int_equal(count_calls(program, SF_ATTENTION), rounds);
        assert_int_equal(count_calls(program, SF_ATTENTION_GRADIENT), rounds);
        assert_int_equal(count_calls(program, SF_OP_DOT_GENERAL), 0);
        sf_program_free(program);
    }
    sf_graph_free(graph);
    test_emulate_gpu();
    compare_text(file, text, "cpu");
    compare_text(file, text, "cuda");
    free(text);
}

static void test_finds_attention_of_jax(void **state)
{
    (void)state;
    find_attention_of_jax("test/data/attention/jax-bf16.stablehlo.mlir");
    find_attention_of_jax("test/data/attention/jax-causal-bf16.stablehlo.mlir");
}

/* The CPU has a kernel for all of that; by itself it uses the kernel for sizes where it is
 * faster. */
static void test_weighs_sizes(void **state)
{
    (void)state;
    static const struct {
        sf_attending what;
        bool takes;
    } rows[] = {
        {{.dtype = SF_F32, .queries = 8, .keys = 8, .depth = 8, .causal = true}, false},
        {{.dtype = SF_F32, .queries = 64, .keys = 64, .depth = 64, .causal = true}, false},
        {{.dtype = SF_F32, .queries = 256, .keys = 256, .depth = 64, .causal = true}, true},
        {{.dtype = SF_F32, .queries = 256, .keys = 256, .depth = 64}, false},
        {{.dtype = SF_F32, .queries = 1024, .keys = 1024, .depth = 128, .causal = true}, true},
        {{.dtype = SF_F32, .queries = 128, .keys = 1024, .depth = 64, .causal = true}, false},
        {{.dtype = SF_F32,
          .queries = 128,
          .keys = 1024,
          .depth = 64,
          .causal = true,
          .offset = 896},
         false},
        {{.dtype = SF_BF16, .queries = 256, .keys = 256, .depth = 64, .causal = true}, true},
        {{.dtype = SF_F64, .queries = 512, .keys = 512, .depth = 64, .causal = true}, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sf_attending what = rows[i].what;
        assert_int_equal(sf_target_cpu.attends(&what), rows[i].takes);
        what.asked = true;
        assert_int_equal(sf_target_cpu.attends(&what), what.dtype != SF_F64);
    }
}

/* In micro-batches, which are a loop, and with recomputed layers, after barriers: every layer, with
 * its gradients, of the recomputed clone. */
static void test_finds_in_time(void **state)
{
    (void)state;
    static const struct {
        int micro_batches;
        const char *recomputed;
        int forward;
    } rows[] = {{2, "none", 2}, {1, "layer", 4}, {2, "layer", 4}, {1, "cheap", 4}};
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    assert_int_equal(sf_load("examples/gpt-micro.stablehlo.mlir", NULL, diag, &graph), SF_OK);
    graph->kernels = SF_KERNELS_ALL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sf_plan_spec pin = {.size = sizeof pin,
                            .mesh = "data=1",
                            .recipe = "dp",
                            .micro_batches = rows[i].micro_batches,
                            .recompute = rows[i].recomputed};
        sf_plan *plan;
        assert_int_equal(sf_pin_step(graph, &pin, diag, &plan), SF_OK);
        sf_local *local = test_local(graph, plan, 0);
        sf_regraph found = sf_find_attention(local->graph, &sf_target_cpu, false, false);
        int forward = 0, backward = 0;
        for (size_t n = 0; found.graph && n < found.graph->nnodes; n++) {
            forward += found.graph->nodes[n]->def->id == SF_ATTENTION;
            backward += found.graph->nodes[n]->def->id == SF_ATTENTION_GRADIENT;
        }
        assert_int_equal(forward, rows[i].forward);
        assert_int_equal(backward, 2);
        sf_regraph_free(&found);
        sf_local_free(local);
        sf_plan_free(plan);
    }
    sf_graph_free(graph);
    sf_diag_free(diag);
}

static void test_computes_attention(void **state)
{
    (void)state;
    test_emulate_gpu();
    for (size_t i = 0; i < 2; i++)
        compare_text(cases[i].name, cases[i].text, "cuda");
    for (size_t i = 0; i < NCASES; i++)
        compare_text(cases[i].name, cases[i].text, "cpu");
}

/* Origins of instructions, buffers and the trace are those of the given step, whatever was lowered
 * in its place; and all of attention runs in its two instructions. */
static void test_speaks_of_the_step(void **state)
{
    (void)state;
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    sf_arena arena = {0};
    sf_trace trace;
    sf_load_options load = {.size = sizeof load};
    assert_int_equal(sf_load("examples/gpt-micro.stablehlo.mlir", &load, diag, &graph), SF_OK);
    graph->kernels = SF_KERNELS_ALL;
    sf_lower_options options = {.target = &sf_target_cpu, .trace_arena = &arena};
    sf_program *program = sf_lower(graph, &options, &trace);
    assert_int_equal(sf_program_check(program, diag), SF_OK);
    int calls = 0;
    for (size_t i = 0; i < program->ninsts; i++) {
        const sf_inst *inst = &program->insts[i];
        if (inst->kind != SF_INST_CALL || inst->call->op.def->id < SF_ATTENTION)
            continue;
        calls++;
        assert_true(sf_is(graph->nodes[inst->origin.node], SF_OP_DOT_GENERAL));
        assert_int_equal(trace.insts[inst->origin.node], i);
    }
    assert_int_equal(calls, 4);
    for (size_t b = 0; b < program->nbuffers; b++)
        assert_true(program->buffers[b].value == SF_NONE ||
                    program->buffers[b].value < graph->nvalues);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (sf_is(node, SF_OP_EXPONENTIAL) && sf_type_of(graph, node->result)->rank == 4)
            assert_true(program->insts[trace.insts[node->id]].kind == SF_INST_CALL);
    }
    sf_program_free(program);
    sf_arena_free(&arena);
    sf_graph_free(graph);
    sf_diag_free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_attention),        cmocka_unit_test(test_asks_for_rounding),
        cmocka_unit_test(test_finds_attention_of_jax), cmocka_unit_test(test_finds_gradients),
        cmocka_unit_test(test_finds_narrowed),         cmocka_unit_test(test_computes_attention),
        cmocka_unit_test(test_speaks_of_the_step),     cmocka_unit_test(test_weighs_sizes),
        cmocka_unit_test(test_finds_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
