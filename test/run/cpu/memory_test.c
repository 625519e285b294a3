/* The memory of a step is known before it runs, and is what it uses: by the count of sf_alloc, by what is
 * written in the arena, and by what the system says. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ir/print_graph.h"
#include "op/eval.h"
#include "prog/program.h"
#include "run/fast/fast.h"
#include "sheaf/sheaf.h"
#include "support/draw.h"
#include "support/run.h"
#include "support/sanitized.h"

/* A step of training of width N with products, fused loops, rows folded, a scan, a sort, a loop that stays
 * and state. */
static const char step_text[] =
    "func.func public @main(%w: tensor<NxNxf32>, %x: tensor<64xNxf32>, %k: tensor<16xNxi32>) -> "
    "(tensor<NxNxf32>, tensor<f32>, tensor<16xNxi32>, tensor<64xNxf32>) {\n"
    "%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%rate = stablehlo.constant dense<0.01> : tensor<NxNxf32>\n"
    "%h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64xNxf32>, "
    "tensor<NxNxf32>) -> tensor<64xNxf32>\n"
    "%t = stablehlo.tanh %h : tensor<64xNxf32>\n"
    "%rows = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [1] : "
    "(tensor<64xNxf32>, tensor<f32>) -> tensor<64xf32>\n"
    "%each = stablehlo.broadcast_in_dim %rows, dims = [0] : (tensor<64xf32>) -> tensor<64xNxf32>\n"
    "%p = stablehlo.subtract %t, %each : tensor<64xNxf32>\n"
    "%loss = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0, 1] : "
    "(tensor<64xNxf32>, tensor<f32>) -> tensor<f32>\n"
    "%g = stablehlo.dot_general %x, %p, contracting_dims = [0] x [0] : (tensor<64xNxf32>, "
    "tensor<64xNxf32>) -> tensor<NxNxf32>\n"
    "%d = stablehlo.multiply %g, %rate : tensor<NxNxf32>\n"
    "%v = stablehlo.subtract %w, %d : tensor<NxNxf32>\n"
    "%s = \"stablehlo.sort\"(%k) <{dimension = 1 : i64, is_stable = true}> ({ ^bb0(%a: "
    "tensor<i32>, "
    "%b: tensor<i32>): %u = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1> "
    "stablehlo.return %u : tensor<i1> }) : (tensor<16xNxi32>) -> tensor<16xNxi32>\n"
    "%c = \"stablehlo.reduce_window\"(%p, %zero) <{window_dimensions = array<i64: 1, 3>, "
    "window_strides = array<i64: 1, 1>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}> ({ "
    "^bb0(%a: tensor<f32>, %b: tensor<f32>): %u = stablehlo.add %a, %b : tensor<f32> "
    "stablehlo.return %u : tensor<f32> }) : (tensor<64xNxf32>, tensor<f32>) -> tensor<64xNxf32>\n"
    "%limit = stablehlo.constant dense<1.0e3> : tensor<f32>\n"
    "%first = stablehlo.multiply %loss, %zero : tensor<f32>\n"
    "%o:2 = stablehlo.while(%y = %c, %n = %first) : tensor<64xNxf32>, tensor<f32> cond {\n"
    "%u = stablehlo.compare LT, %n, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    "stablehlo.return %u : tensor<i1>\n} do {\n"
    "%m = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<64xNxf32>, "
    "tensor<NxNxf32>) -> tensor<64xNxf32>\n"
    "%q = stablehlo.tanh %m : tensor<64xNxf32>\n"
    "%z = stablehlo.transpose %q, dims = [1, 0] : (tensor<64xNxf32>) -> tensor<Nx64xf32>\n"
    "%f = stablehlo.dot_general %q, %z, contracting_dims = [1] x [0] : (tensor<64xNxf32>, "
    "tensor<Nx64xf32>) -> tensor<64x64xf32>\n"
    "%e = stablehlo.dot_general %f, %q, contracting_dims = [1] x [0] : (tensor<64x64xf32>, "
    "tensor<64xNxf32>) -> tensor<64xNxf32>\n"
    "%j = stablehlo.add %n, %limit : tensor<f32>\n"
    "stablehlo.return %e, %j : tensor<64xNxf32>, tensor<f32>\n}\n"
    "return %v, %loss, %s, %o#0 : tensor<NxNxf32>, tensor<f32>, tensor<16xNxi32>, "
    "tensor<64xNxf32>\n"
    "}\n";

static sf_graph *load_text(const char *text)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    if (sf_load_text(text, strlen(text), "step", NULL, diag, &graph) != SF_OK)
        print_error("%s\n", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    assert_non_null(graph);
    return graph;
}

/* The step with every N replaced by a number. */
static sf_graph *load_step(int width)
{
    sf_buf text = {0};
    for (const char *at = step_text; *at; at++)
        if (at[0] == 'N' && at[1] == 'x')
            sf_buf_printf(&text, "%d", width);
        else
            sf_buf_putc(&text, *at);
    sf_graph *graph = load_text(text.text);
    sf_buf_free(&text);
    return graph;
}

typedef struct usage {
    int64_t announced; /* before the first step */
    int64_t opened;    /* bytes that the engine took when it was made */
    int64_t grown;     /* most bytes that steps took besides */
} usage;

static usage measure(const sf_graph *graph, sf_threads *threads)
{
    usage u;
    sf_program *program = test_lower(graph);
    sf_engine *engine;
    sf_engine_options options = {.pool = threads};
    size_t before = sf_mem_live();
    assert_int_equal(sf_engine_open(program, &options, NULL, &engine), SF_OK);
    size_t opened = sf_mem_live();
    u.announced = sf_engine_memory(engine);
    u.opened = (int64_t)(opened - before);
    sf_mem_restart_peak();
    for (int i = 0; i < 2; i++)
        assert_int_equal(sf_engine_step(engine, NULL), SF_OK);
    u.grown = (int64_t)(sf_mem_peak() - opened);
    assert_int_equal(sf_engine_memory(engine), u.announced);
    sf_engine_free(engine);
    sf_program_free(program);
    return u;
}

/* Lists and instructions are the same for every width, so all that a wider step takes is tensors and
 * scratch: as many bytes as it announces, to the byte. */
static void test_wider(void **state)
{
    (void)state;
    enum { STEP = 64, WIDTHS = 4 };
    for (int threads = 1; threads <= 3; threads++) {
        sf_threads *pool = sf_threads_new(threads);
        usage narrow = {0};
        for (int i = 1; i <= WIDTHS; i++) {
            sf_graph *graph = load_step(STEP * i);
            usage wide = measure(graph, pool);
            sf_graph_free(graph);
            if (i > 1)
                assert_int_equal(wide.opened - narrow.opened, wide.announced - narrow.announced);
            assert_true(i == 1 || wide.announced > narrow.announced);
            narrow = wide;
        }
        sf_threads_free(pool);
    }
}

/* Bytes of tensors in regions that the engine may take while it runs; it has announced them. */
static int64_t values_in_regions(const sf_program *program)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < program->ninsts; i++) {
        const sf_inst *inst = &program->insts[i];
        bool nests = inst->kind == SF_INST_WHILE || inst->kind == SF_INST_CASE;
        for (uint32_t j = 0; nests && j < inst->nest->nbodies; j++)
            bytes += values_in_regions(inst->nest->bodies[j]);
        if (inst->kind == SF_INST_CALL && !inst->call->kernel)
            bytes += sf_eval_needs(&inst->call->op).values;
    }
    return bytes;
}

/* No op of the table takes more while it runs than was announced. */
static void test_every_op(void **state)
{
    (void)state;
    enum { CASES = 40 };
    sf_threads *pool = sf_threads_new(2);
    for (int op = 0; op < SF_OP_COUNT; op++)
        for (uint32_t seed = 0; test_can_draw((sf_opcode)op) && seed < CASES; seed++) {
            test_case c;
            sf_buf text = {0};
            test_case_draw(&c, (sf_opcode)op, seed, seed % 2, 2000);
            sf_print_stablehlo(c.graph, &text);
            sf_graph *graph = load_text(text.text);
            usage u = measure(graph, pool);
            sf_program *program = test_lower(graph);
            int64_t values = values_in_regions(program);
            sf_program_free(program);
            if (u.grown > values || u.announced - values > u.opened) {
                print_error("%s, seed %u: announced %" PRId64 " with %" PRId64
                            " in regions, opened with %" PRId64 ", grew by %" PRId64 "\n%s\n",
                            sf_opdef_get((sf_opcode)op)->name, seed, u.announced, values, u.opened,
                            u.grown, text.text);
                fail();
            }
            sf_graph_free(graph);
            sf_buf_free(&text);
            test_case_free(&c);
        }
    sf_threads_free(pool);
}

/* One past the last byte that the step changes, when the arena is filled with `filler` before. */
static int64_t written(const sf_graph *graph, int filler, int64_t *arena_bytes)
{
    sf_runner runner = test_open_engine(graph, "cpu", 2, NULL);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_tensor argument = test_argument(runner.engine, i);
        for (int64_t k = 0; k < argument.type->count; k++)
            sf_store_f64(argument.type->dtype, argument.data, k, (double)(k % 7) / 8);
    }
    test_arena arena = test_find_arena(&runner);
    assert_non_null(arena.at);
    memset(arena.at, filler, (size_t)arena.bytes);
    assert_int_equal(sf_engine_step(runner.engine, NULL), SF_OK);
    int64_t end = arena.bytes;
    while (end > 0 && (unsigned char)arena.at[end - 1] == filler)
        end--;
    *arena_bytes = arena.bytes;
    sf_runner_close(&runner);
    return end;
}

/* The arena is written up to its last buffer, whose end is rounded up to 64 bytes. */
static void check_arena(const sf_graph *graph)
{
    int64_t bytes, first = written(graph, 0xa5, &bytes), second = written(graph, 0x5a, &bytes);
    int64_t end = first > second ? first : second;
    assert_true(end > bytes - 64);
}

static void test_arena_is_used(void **state)
{
    (void)state;
    for (int i = 1; i <= 3; i++) {
        sf_graph *graph = load_step(64 * i);
        check_arena(graph);
        sf_graph_free(graph);
    }
    sf_graph *graph;
    assert_int_equal(sf_load("examples/gpt-micro.stablehlo.mlir", NULL, NULL, &graph), SF_OK);
    check_arena(graph);
    sf_graph_free(graph);
}

/* In bytes; of this process. */
static int64_t status_of(const char *key)
{
    char line[256];
    int64_t kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            kilobytes = strtoll(line + strlen(key) + 1, NULL, 10);
    if (file)
        fclose(file);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

enum { WIDE = 3072 };

/* An engine that has run the step once. */
static sf_runner run_once(const sf_graph *graph)
{
    sf_runner runner = test_open_engine(graph, "cpu", 2, NULL);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_tensor argument = test_argument(runner.engine, i);
        memset(argument.data, 0x3c, (size_t)sf_type_bytes(argument.type));
    }
    assert_int_equal(sf_engine_step(runner.engine, NULL), SF_OK);
    return runner;
}

/* In a process of its own: how far the resident set grows beside what was announced. A first engine is run and
 * freed before that, for libraries keep buffers of their own that nobody announces. */
static int child(void)
{
    sf_graph *graph = load_step(WIDE);
    sf_runner first = run_once(graph);
    sf_runner_close(&first);
    int64_t before = status_of("VmRSS");
    sf_runner runner = run_once(graph);
    double grown = (double)(status_of("VmHWM") - before);
    double said = (double)sf_engine_memory(runner.engine);
    printf("announced %.0f bytes, the resident set grew by %.0f\n", said, grown);
    fflush(stdout);
    return grown > 0.97 * said && grown < 1.03 * said ? 0 : 1;
}

static void test_resident(void **state)
{
    (void)state;
    if (test_sanitized() || status_of("VmHWM") < 0)
        skip();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(child());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resident), /* first, while the process is small */
        cmocka_unit_test(test_wider),
        cmocka_unit_test(test_every_op),
        cmocka_unit_test(test_arena_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
