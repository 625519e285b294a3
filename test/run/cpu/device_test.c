/* Every op of the table on the CPU engine against the oracle: random instances at many shapes, types and
 * layouts (support/draw.h), with one thread and with two. Runs with two agree to the bit, and with those of one
 * where no sum is cut by threads. A failure prints the op, the seed and the graph.
 *
 *     SHEAF_DEVICE_CASES=5000   instances of each op (80 unless set)
 *     SHEAF_DEVICE_SEED=7       the first seed (0 unless set)
 *     SHEAF_DEVICE_OP=pad       only this op
 *     SHEAF_DEVICE_ENGINE=cuda  another engine than the CPU's; with SHEAF_CUDA=PATH on the emulator
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ir/print_graph.h"
#include "run/cuda/cuda_device.h"
#include "run/cuda/cuda_env.h"
#include "run/cuda/cuda_target.h"
#include "run/engine/engine.h"
#include "run/fast/fast_kernels.h"
#include "solve/search/dice.h"
#include "support/draw.h"
#include "support/pieces.h"
#include "support/run.h"
#include "support/sanitized.h"

enum { THREADS = 2, ENGINES = 3, STEPS = 2, CASES = 80, SLOW_CASES = 12, MOST_PRINTED = 3 };

static sf_threads *pools[THREADS];
static const char *engine_name; /* NULL: the CPU's */
static int nengines = ENGINES;

static int open_pools(void **state)
{
    (void)state;
    engine_name = getenv("SHEAF_DEVICE_ENGINE");
    nengines = engine_name ? 1 : ENGINES; /* the number of threads is nothing to others */
    for (int i = 0; i < THREADS; i++)
        pools[i] = sf_threads_new(i + 1);
    return 0;
}

static int close_pools(void **state)
{
    (void)state;
    for (int i = 0; i < THREADS; i++)
        sf_threads_free(pools[i]);
    return 0;
}

static long from_environment(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/* The reason why an op is not run. */
static const char *excuse(sf_opcode op)
{
    if (strcmp(sf_opdef_get(op)->dialect, "sheaf") == 0)
        return "it needs ranks: see local/local_test.c and run/comm/comm_test.c";
    bool is_norm = op == SF_OP_BATCH_NORM_GRAD || op == SF_OP_BATCH_NORM_INFERENCE ||
                   op == SF_OP_BATCH_NORM_TRAINING;
    if (is_norm)
        return "import puts its definition in its place";
    return op == SF_OP_CALL ? "import puts the function in its place" : NULL;
}

/* One graph on all engines. */
typedef struct trial {
    const char *name;
    test_case c;       /* that the graph was drawn in; empty for a text */
    const char *state; /* of a text: its links */
    sf_buf text;
    sf_graph *graph;
    sf_runner ours[ENGINES], oracle; /* with one thread, two and two */
    sf_diag *diag;
} trial;

#define REFUSE(t, ...)                                                                             \
    do {                                                                                           \
        print_error("%s, seed %u: ", (t)->name, (t)->c.random.key);                                \
        print_error(__VA_ARGS__);                                                                  \
        return false;                                                                              \
    } while (0)

/* Links arguments to results of their types, each result to one: these are then updated in place where
 * that can be done. */
static void link_state(trial *t, sf_buf *out)
{
    const sf_graph *graph = t->c.graph;
    bool taken[TEST_MOST_RESULTS] = {0};
    for (uint32_t a = 0; graph && t->c.random.key % 4 && a < graph->top->narguments; a++)
        for (uint32_t r = 0; r < graph->top->nresults; r++)
            if (!taken[r] && sf_result_type(graph, r) == sf_argument_type(graph, a)) {
                sf_buf_printf(out, "%s%u=%u", out->length ? "," : "", a, r);
                taken[r] = true;
                break;
            }
    if (out->length == 0)
        sf_buf_puts(out, t->state ? t->state : "none");
}

/* Whether the host can reach the memory of the engine. */
static bool is_in_reach(void)
{
    return !engine_name || getenv("SHEAF_CUDA");
}

static bool open_trial(trial *t)
{
    sf_buf state = {0};
    link_state(t, &state);
    sf_load_options load = {
        .size = sizeof load, .unroll = t->c.random.key % 2 ? -1 : 0, .state = state.text};
    sf_status status =
        sf_load_text(t->text.text, t->text.length, "case", &load, t->diag, &t->graph);
    sf_buf_free(&state);
    if (status != SF_OK)
        REFUSE(t, "the text is refused: %s\n", sf_diag_text(t->diag, 0));
    sf_runner_options options = {.engine = "oracle"};
    if (sf_runner_open(t->graph, &options, t->diag, &t->oracle) != SF_OK)
        REFUSE(t, "no oracle: %s\n", sf_diag_text(t->diag, 0));
    for (int i = 0; i < nengines; i++) {
        options = (sf_runner_options){
            .engine = engine_name, .check = true, .with = {.pool = pools[i > 0]}};
        if (sf_runner_open(t->graph, &options, t->diag, &t->ours[i]) != SF_OK)
            REFUSE(t, "no engine: %s\n", sf_diag_text(t->diag, 0));
        if (!is_in_reach())
            continue;
        test_arena arena = test_find_arena(&t->ours[i]);
        if (arena.at) /* nobody may count on zeros */
            memset(arena.at, 0xff, (size_t)arena.bytes);
    }
    return true;
}

static void close_trial(trial *t)
{
    for (int i = 0; i < nengines; i++)
        sf_runner_close(&t->ours[i]);
    sf_runner_close(&t->oracle);
    sf_graph_free(t->graph);
    sf_buf_free(&t->text);
    sf_diag_free(t->diag);
    if (t->c.graph)
        test_case_free(&t->c);
}

static bool is_close(double x, double y, test_tolerance tolerance)
{
    if (isnan(x) || isnan(y) || isinf(x) || isinf(y))
        return x == y || (isnan(x) && isnan(y));
    return fabs(x - y) <= tolerance.relative * fabs(y) + tolerance.absolute;
}

static bool same_element(const sf_tensor *a, const sf_tensor *b, int64_t i,
                         test_tolerance tolerance)
{
    sf_dtype dtype = a->type->dtype;
    if (sf_is_complex(dtype))
        return is_close(test_get_part(a, i, 0), test_get_part(b, i, 0), tolerance) &&
               is_close(test_get_part(a, i, 1), test_get_part(b, i, 1), tolerance);
    if (!sf_is_float(dtype))
        return sf_load_bits(dtype, a->data, i) == sf_load_bits(dtype, b->data, i);
    return is_close(sf_get_f64(a, i), sf_get_f64(b, i), tolerance);
}

static double imaginary(const sf_tensor *tensor, int64_t i)
{
    return sf_is_complex(tensor->type->dtype) ? test_get_part(tensor, i, 1) : 0;
}

/* Of several ops in a row only the type is known, and the size of the numbers. */
static test_tolerance tolerance_of(const trial *t, uint32_t index, const sf_tensor *expected)
{
    if (t->c.graph)
        return t->c.tolerances[index];
    double relative = 16 * test_epsilon(expected->type->dtype), scale = 0;
    for (int64_t i = 0; i < expected->type->count; i++)
        if (isfinite(sf_get_f64(expected, i)))
            scale = fmax(scale, fabs(sf_get_f64(expected, i)));
    return (test_tolerance){relative, relative * scale};
}

/* Fused loops add up the sums of threads. */
static bool threads_show(const trial *t)
{
    return !t->c.graph || t->c.op == SF_OP_REDUCE;
}

static bool check_result(trial *t, int engine, uint32_t index)
{
    sf_tensor a = test_result(t->ours[engine].engine, index),
              b = test_result(t->oracle.engine, index);
    int threads = sf_engine_threads(t->ours[engine].engine);
    test_tolerance tolerance = tolerance_of(t, index, &b);
    for (int64_t i = 0; i < b.type->count; i++)
        if (!same_element(&a, &b, i, tolerance))
            REFUSE(t, "%d threads, result %u element %d is %.17g %.17g, expected %.17g %.17g\n",
                   threads, index, (int)i, sf_get_f64(&a, i), imaginary(&a, i), sf_get_f64(&b, i),
                   imaginary(&b, i));
    if (engine == 0 || b.type->count == 0 || (engine == 1 && threads_show(t)))
        return true;
    sf_tensor before = test_result(t->ours[engine - 1].engine, index);
    if (memcmp(a.data, before.data, (size_t)sf_type_bytes(b.type)) != 0)
        REFUSE(t, "result %u of engine %d has other bits than that of %d\n", index, engine,
               engine - 1);
    return true;
}

/* An argument that is no state is unchanged. */
static bool check_argument(trial *t, int engine, uint32_t index)
{
    sf_tensor a, b = test_argument(t->oracle.engine, index);
    if (sf_engine_lend(t->ours[engine].engine, index, false, t->diag, &a) != SF_OK)
        REFUSE(t, "no argument: %s\n", sf_diag_text(t->diag, 0));
    bool is_written = t->graph->arguments[index].next == SF_NONE && a.type->count &&
                      memcmp(a.data, b.data, (size_t)sf_type_bytes(a.type)) != 0;
    if (sf_engine_give_back(t->ours[engine].engine, index, t->diag) != SF_OK || is_written)
        REFUSE(t, "engine %d: argument %u was written\n", engine, index);
    return true;
}

static bool run_step(trial *t)
{
    const sf_block *top = t->graph->top;
    for (int e = 0; e < nengines; e++)
        for (uint32_t i = 0; i < top->narguments; i++) {
            sf_tensor from = test_argument(t->oracle.engine, i);
            if (sf_engine_write(t->ours[e].engine, i, from.data, t->diag) != SF_OK)
                REFUSE(t, "no argument: %s\n", sf_diag_text(t->diag, 0));
        }
    if (sf_engine_step(t->oracle.engine, t->diag) != SF_OK)
        REFUSE(t, "the oracle fails: %s\n", sf_diag_text(t->diag, 0));
    for (int e = 0; e < nengines; e++) {
        if (sf_engine_step(t->ours[e].engine, t->diag) != SF_OK)
            REFUSE(t, "the engine fails: %s\n", sf_diag_text(t->diag, 0));
        for (uint32_t i = 0; i < top->nresults; i++)
            if (!check_result(t, e, i))
                return false;
        for (uint32_t i = 0; i < top->narguments; i++)
            if (!check_argument(t, e, i))
                return false;
    }
    return true;
}

static bool run_trial(trial *t)
{
    if (!open_trial(t))
        return false;
    for (uint32_t i = 0; i < t->graph->top->narguments; i++) {
        if (!t->c.graph)
            t->c.ranges[i] = test_small;
        test_case_fill(&t->c, i, test_argument(t->oracle.engine, i));
    }
    for (int step = 0; step < STEPS; step++)
        if (!run_step(t))
            return false;
    return true;
}

/* The kernels of a text, among those that are compiled together. */
static void add_kernels(const char *text, size_t length, const sf_load_options *load,
                        sf_kernels *kernels)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    if (sf_load_text(text, length, "case", load, diag, &graph) == SF_OK) {
        sf_lower_options options = {.target = &sf_target_cuda};
        sf_program *program = sf_lower_as_text(graph, &options);
        sf_write_program(kernels, program, false);
        sf_program_free(program);
    }
    sf_graph_free(graph);
    sf_diag_free(diag);
}

static void add_case(sf_opcode op, uint32_t seed, sf_kernels *kernels)
{
    trial t = {.name = sf_opdef_get(op)->name};
    sf_buf state = {0};
    test_case_draw(&t.c, op, seed, false, 0);
    sf_print_stablehlo(t.c.graph, &t.text);
    link_state(&t, &state);
    sf_load_options load = {
        .size = sizeof load, .unroll = t.c.random.key % 2 ? -1 : 0, .state = state.text};
    add_kernels(t.text.text, t.text.length, &load, kernels);
    sf_buf_free(&state);
    sf_buf_free(&t.text);
    test_case_free(&t.c);
}

static void compile_kernels(const sf_kernels *kernels)
{
    sf_diag *diag = sf_diag_new();
    sf_device *device = NULL;
    void **functions = sf_alloc((kernels->nkernels + 1) * sizeof *functions);
    if (sf_device_open(0, diag, &device) != SF_OK ||
        device->table->compile(device, kernels, NULL, diag, functions) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    device->table->close(device);
    sf_free(functions);
    sf_diag_free(diag);
}

/* A compiler takes longer to start than to compile a kernel. */
static void compile_together(long cases, long first, const char *only)
{
    sf_kernels kernels = {.needs = {.checks = sf_cuda_wants_checks()}};
    for (int op = 0; op < SF_OP_COUNT; op++)
        for (long i = 0; i < cases && test_can_draw((sf_opcode)op); i++)
            if (!only || strcmp(only, sf_opdef_get((sf_opcode)op)->name) == 0)
                add_case((sf_opcode)op, (uint32_t)(first + i), &kernels);
    compile_kernels(&kernels);
    sf_kernels_free(&kernels);
}

static bool check_case(sf_opcode op, uint32_t seed, bool print)
{
    trial t = {.name = sf_opdef_get(op)->name, .diag = sf_diag_new()};
    for (int i = 0; i < THREADS; i++)
        sf_threads_set_grain(pools[i], seed % 3 ? 1 : 1 << 13);
    test_case_draw(&t.c, op, seed, false, 0);
    sf_print_stablehlo(t.c.graph, &t.text);
    bool good = run_trial(&t);
    if (!good && print && t.text.length < 6000)
        print_error("%s\n", t.text.text);
    close_trial(&t);
    return good;
}

static void test_every_op(void **state)
{
    (void)state;
    long cases =
        from_environment("SHEAF_DEVICE_CASES", test_rounds(engine_name ? SLOW_CASES : CASES));
    long first = from_environment("SHEAF_DEVICE_SEED", 0);
    const char *only = getenv("SHEAF_DEVICE_OP");
    int wrong = 0;
    if (engine_name && is_in_reach())
        compile_together(cases, first, only);
    for (int op = 0; op < SF_OP_COUNT; op++) {
        if (!test_can_draw((sf_opcode)op) ||
            (only && strcmp(only, sf_opdef_get((sf_opcode)op)->name)))
            continue;
        int bad = 0;
        for (long i = 0; i < cases && bad < MOST_PRINTED; i++)
            bad += !check_case((sf_opcode)op, (uint32_t)(first + i), bad == 0);
        wrong += bad;
    }
    assert_int_equal(wrong, 0);
}

static void test_every_op_has_a_generator(void **state)
{
    (void)state;
    int missing = 0;
    for (int op = 0; op < SF_OP_COUNT; op++)
        if (!test_can_draw((sf_opcode)op) && !excuse((sf_opcode)op)) {
            print_error("%s has no generator: add one to test/support/draw_ops.c\n",
                        sf_opdef_get((sf_opcode)op)->name);
            missing++;
        }
    assert_int_equal(missing, 0);
}

static void check_text(const char *text, const char *state)
{
    trial t = {.name = "text", .state = state, .diag = sf_diag_new()};
    sf_buf_puts(&t.text, text);
    bool good = run_trial(&t);
    if (!good)
        print_error("%s\n", text);
    close_trial(&t);
    assert_true(good);
}

/* Each of these was once wrong. */
static void test_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *state;
    } texts[] = {
        /* a view that runs backwards through nothing */
        {"func.func public @main(%a: tensor<3x0xf32>) -> tensor<3x0xf32> {\n"
         "%r = stablehlo.reverse %a, dims = [0, 1] : tensor<3x0xf32>\n"
         "return %r : tensor<3x0xf32>\n}\n",
         NULL},
        /* windows over a view that runs backwards, and so to offsets below zero */
        {"func.func public @main(%a: tensor<2x5x4x3xf32>, %b: tensor<3x2x3x2xf32>) -> "
         "tensor<2x5x5x2xf32> {\n"
         "%x = stablehlo.reverse %a, dims = [0, 1, 2, 3] : tensor<2x5x4x3xf32>\n"
         "%r = stablehlo.convolution(%x, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, "
         "f], "
         "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 "
         ": "
         "i64} : (tensor<2x5x4x3xf32>, tensor<3x2x3x2xf32>) -> tensor<2x5x5x2xf32>\n"
         "return %r : tensor<2x5x5x2xf32>\n}\n",
         NULL},
        /* a product that is too small for a float, in a type without a zero */
        {"func.func public @main() -> tensor<f8E8M0FNU> {\n"
         "%a = stablehlo.constant dense<1e-30> : tensor<f8E8M0FNU>\n"
         "%r = stablehlo.multiply %a, %a : tensor<f8E8M0FNU>\n"
         "return %r : tensor<f8E8M0FNU>\n}\n",
         NULL},
        /* what goes with the largest is no index */
        {"func.func public @main(%a: tensor<6x4xf32>, %b: tensor<6x4xcomplex<f32>>, %i: "
         "tensor<f32>, %j: "
         "tensor<complex<f32>>) -> (tensor<4xf32>, tensor<4xcomplex<f32>>) {\n"
         "%r:2 = \"stablehlo.reduce\"(%a, %b, %i, %j) <{dimensions = array<i64: 0>}> ({\n"
         "^bb0(%p: tensor<f32>, %q: tensor<complex<f32>>, %s: tensor<f32>, %t: "
         "tensor<complex<f32>>):\n"
         "%c = stablehlo.compare GT, %p, %s, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
         "%x = stablehlo.select %c, %p, %s : tensor<i1>, tensor<f32>\n"
         "%y = stablehlo.select %c, %q, %t : tensor<i1>, tensor<complex<f32>>\n"
         "stablehlo.return %x, %y : tensor<f32>, tensor<complex<f32>>\n"
         "}) : (tensor<6x4xf32>, tensor<6x4xcomplex<f32>>, tensor<f32>, tensor<complex<f32>>) -> "
         "(tensor<4xf32>, tensor<4xcomplex<f32>>)\n"
         "return %r#0, %r#1 : tensor<4xf32>, tensor<4xcomplex<f32>>\n}\n",
         NULL},
        /* and a number of 64 bits that is too small for a float */
        {"func.func public @main(%a: tensor<3xf64>) -> tensor<3xf8E8M0FNU> {\n"
         "%b = stablehlo.constant dense<[1e-300, 3.0, 1e-40]> : tensor<3xf64>\n"
         "%c = stablehlo.maximum %a, %b : tensor<3xf64>\n"
         "%d = stablehlo.minimum %c, %b : tensor<3xf64>\n"
         "%r = stablehlo.convert %d : (tensor<3xf64>) -> tensor<3xf8E8M0FNU>\n"
         "return %r : tensor<3xf8E8M0FNU>\n}\n",
         NULL},
        /* products of no batches, which are walked and not handed over as one */
        {"func.func public @main(%a: tensor<0x4x3x5xf32>, %b: tensor<0x3x5x2xf32>) -> "
         "tensor<0x3x4x2xf32> {\n"
         "%r = stablehlo.dot_general %a, %b, batching_dims = [0, 2] x [0, 1], contracting_dims = "
         "[3] x "
         "[2] : (tensor<0x4x3x5xf32>, tensor<0x3x5x2xf32>) -> tensor<0x3x4x2xf32>\n"
         "return %r : tensor<0x3x4x2xf32>\n}\n",
         NULL},
        /* the next value is a part of something larger */
        {"func.func public @main(%a: tensor<3xf32>, %b: tensor<6xf32>) -> tensor<3xf32> {\n"
         "%t = stablehlo.add %b, %b : tensor<6xf32>\n"
         "%r = stablehlo.slice %t [3:6] : (tensor<6xf32>) -> tensor<3xf32>\n"
         "return %r : tensor<3xf32>\n}\n",
         "0=0"},
        /* two arguments change places */
        {"func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<3xf32>, "
         "tensor<3xf32>) {\n"
         "return %a, %b : tensor<3xf32>, tensor<3xf32>\n}\n",
         "0=1,1=0"},
        /* a result is the old value of what changes */
        {"func.func public @main(%a: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {\n"
         "%r = stablehlo.add %a, %a : tensor<3xf32>\n"
         "return %r, %a : tensor<3xf32>, tensor<3xf32>\n}\n",
         "0=0"},
        /* a loop that stays, over all rows but the first */
        {"func.func public @main(%x: tensor<5x3xf32>, %n: tensor<i32>) -> tensor<3xf32> {\n"
         "%z = stablehlo.constant dense<0> : tensor<i32>\n"
         "%four = stablehlo.constant dense<4> : tensor<i32>\n"
         "%none = stablehlo.and %n, %z : tensor<i32>\n"
         "%turns = stablehlo.add %none, %four : tensor<i32>\n"
         "%s = stablehlo.constant dense<0.0> : tensor<3xf32>\n"
         "%r = stablehlo.slice %x [1:5, 0:3] : (tensor<5x3xf32>) -> tensor<4x3xf32>\n"
         "%w:3 = stablehlo.while(%a = %r, %i = %z, %c = %s) : tensor<4x3xf32>, tensor<i32>, "
         "tensor<3xf32>\ncond {\n"
         "%l = stablehlo.compare LT, %i, %turns, SIGNED : (tensor<i32>, tensor<i32>) -> "
         "tensor<i1>\nstablehlo.return %l : tensor<i1>\n} do {\n"
         "%d = stablehlo.dynamic_slice %a, %i, %z, sizes = [1, 3] : (tensor<4x3xf32>, tensor<i32>, "
         "tensor<i32>) -> tensor<1x3xf32>\n"
         "%e = stablehlo.reshape %d : (tensor<1x3xf32>) -> tensor<3xf32>\n"
         "%f = stablehlo.add %c, %e : tensor<3xf32>\n"
         "%one = stablehlo.constant dense<1> : tensor<i32>\n"
         "%j = stablehlo.add %i, %one : tensor<i32>\n"
         "stablehlo.return %a, %j, %f : tensor<4x3xf32>, tensor<i32>, tensor<3xf32>\n}\n"
         "return %w#2 : tensor<3xf32>\n}\n",
         NULL},
        /* not wrong, but nearly: the next value at one place needs the old one at another */
        {"func.func public @main(%a: tensor<300x300xf32>) -> tensor<300x300xf32> {\n"
         "%t = stablehlo.transpose %a, dims = [1, 0] : (tensor<300x300xf32>) -> "
         "tensor<300x300xf32>\n"
         "%r = stablehlo.subtract %t, %a : tensor<300x300xf32>\n"
         "return %r : tensor<300x300xf32>\n}\n",
         "0=0"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_text(texts[i].text, texts[i].state);
}

/* Softmax, layer norm, sums over rows and columns, broadcasts and transposes, at sizes below, at and above
 * those of tiles. */
static const char loops[] =
    "func.func public @main(%%x: tensor<%dx%dxf32>, %%g: tensor<%dxf32>, %%w: tensor<%dx%dxf32>)"
    " -> (tensor<%dx%dxf32>, tensor<%dxf32>, tensor<%dxf32>, tensor<f32>, tensor<%dx%dxf32>) {\n"
    "%%low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "%%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%%m = stablehlo.reduce(%%x init: %%low) applies stablehlo.maximum across dimensions = [1] : "
    "(tensor<%dx%dxf32>, tensor<f32>) -> tensor<%dxf32>\n"
    "%%mb = stablehlo.broadcast_in_dim %%m, dims = [0] : (tensor<%dxf32>) -> tensor<%dx%dxf32>\n"
    "%%d = stablehlo.subtract %%x, %%mb : tensor<%dx%dxf32>\n"
    "%%e = stablehlo.exponential %%d : tensor<%dx%dxf32>\n"
    "%%s = stablehlo.reduce(%%e init: %%zero) applies stablehlo.add across dimensions = [1] : "
    "(tensor<%dx%dxf32>, tensor<f32>) -> tensor<%dxf32>\n"
    "%%sb = stablehlo.broadcast_in_dim %%s, dims = [0] : (tensor<%dxf32>) -> tensor<%dx%dxf32>\n"
    "%%p = stablehlo.divide %%e, %%sb : tensor<%dx%dxf32>\n"
    "%%gb = stablehlo.broadcast_in_dim %%g, dims = [1] : (tensor<%dxf32>) -> tensor<%dx%dxf32>\n"
    "%%q = stablehlo.multiply %%p, %%gb : tensor<%dx%dxf32>\n"
    "%%c = stablehlo.reduce(%%q init: %%zero) applies stablehlo.add across dimensions = [0] : "
    "(tensor<%dx%dxf32>, tensor<f32>) -> tensor<%dxf32>\n"
    "%%l = stablehlo.log %%s : tensor<%dxf32>\n"
    "%%t = stablehlo.reduce(%%q init: %%zero) applies stablehlo.add across dimensions = [0, 1] : "
    "(tensor<%dx%dxf32>, tensor<f32>) -> tensor<f32>\n"
    "%%wt = stablehlo.transpose %%w, dims = [1, 0] : (tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n"
    "%%u = stablehlo.add %%wt, %%q : tensor<%dx%dxf32>\n"
    "return %%q, %%c, %%l, %%t, %%u : tensor<%dx%dxf32>, tensor<%dxf32>, tensor<%dxf32>, "
    "tensor<f32>, tensor<%dx%dxf32>\n}\n";

static void test_loops(void **state)
{
    (void)state;
    static const int sizes[][2] = {{2, 3},    {1, 17},    {5, 1000},  {64, 64},
                                   {7, 9000}, {3000, 11}, {300, 300}, {2, 40000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int r = sizes[i][0], c = sizes[i][1];
        static char text[8192];
        snprintf(text, sizeof text, loops, r, c, c, c, r, r, c, c, r, r, c, r, c, r, r, r, c, r, c,
                 r, c, r, c, r, r, r, c, r, c, c, r, c, r, c, r, c, c, r, r, c, c, r, r, c, r, c, r,
                 c, c, r, r, c);
        check_text(text, NULL);
    }
}

/* Updates of windows that begin in an order of their own, some of them outside, at sizes below, at and above those of parts and
 * chunks: bodies that add up, that take the last, and whose order matters. */
static const char scatters[] =
    "func.func public @main(%%x: tensor<%dx%dxf32>, %%u: tensor<%dx%dxf32>) -> tensor<%dx%dxf32> "
    "{\n"
    "%%i = stablehlo.iota dim = 0 : tensor<%dx1xi32>\n"
    "%%p = stablehlo.constant dense<7919> : tensor<%dx1xi32>\n"
    "%%q = stablehlo.constant dense<%d> : tensor<%dx1xi32>\n"
    "%%o = stablehlo.constant dense<1> : tensor<%dx1xi32>\n"
    "%%m = stablehlo.multiply %%i, %%p : tensor<%dx1xi32>\n"
    "%%r = stablehlo.remainder %%m, %%q : tensor<%dx1xi32>\n"
    "%%s = stablehlo.subtract %%r, %%o : tensor<%dx1xi32>\n"
    "%%y = \"stablehlo.scatter\"(%%x, %%s, %%u) <{indices_are_sorted = false, "
    "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims "
    "= [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> "
    "({\n^bb0(%%a: tensor<f32>, %%b: tensor<f32>):\n%s"
    "stablehlo.return %%c : tensor<f32>\n}) : (tensor<%dx%dxf32>, tensor<%dx1xi32>, "
    "tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n"
    "return %%y : tensor<%dx%dxf32>\n}\n";

static void test_scatters(void **state)
{
    (void)state;
    static const struct {
        int vectors, places, window;
    } sizes[] = {{17, 3, 2},     {2000, 5, 3},   {16385, 1, 1},
                 {40000, 5, 12}, {300, 9000, 1}, {70000, 300, 2}};
    static const char *const bodies[] = {"%c = stablehlo.add %a, %b : tensor<f32>\n",
                                         "%c = stablehlo.maximum %b, %b : tensor<f32>\n",
                                         "%h = stablehlo.constant dense<0.5> : tensor<f32>\n"
                                         "%d = stablehlo.multiply %a, %h : tensor<f32>\n"
                                         "%c = stablehlo.subtract %b, %d : tensor<f32>\n"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
            int n = sizes[i].vectors, p = sizes[i].places, w = sizes[i].window;
            static char text[4096];
            snprintf(text, sizeof text, scatters, p, w, n, w, p, w, n, n, p + 2, n, n, n, n, n,
                     bodies[b], p, w, n, n, w, p, w, p, w);
            check_text(text, NULL);
        }
}

/* Sums of tensors that are padded at edges and between elements, or cut, and what loops do with them: they are stored,
 * transposed, multiplied, and added up along rows and columns. */
static void put_padded(sf_buf *out, sf_dice *dice, const char *type, int number, const int64_t *to,
                       const int64_t *from, bool computed)
{
    int64_t low[3], high[3], interior[3];
    for (int d = 0; d < 3; d++) {
        interior[d] = from[d] < to[d] ? sf_dice_below(dice, 3) : 0;
        low[d] = (int64_t)sf_dice_below(dice, 5) - 2;
        if (low[d] + (from[d] - 1) * (interior[d] + 1) < 0)
            low[d] = 0;
        high[d] = to[d] - low[d] - (from[d] - 1) * (interior[d] + 1) - 1;
    }
    sf_buf_printf(out, "%%x%d = stablehlo.%s %%a%d : tensor<%dx%dx%dx%s>\n", number,
                  computed ? "tanh" : "negate", number, (int)from[0], (int)from[1], (int)from[2],
                  type);
    sf_buf_printf(out,
                  "%%p%d = stablehlo.pad %%%c%d, %%v, low = [%d, %d, %d], high = [%d, %d, %d],"
                  " interior = [%d, %d, %d] : (tensor<%dx%dx%dx%s>, tensor<%s>) -> "
                  "tensor<%dx%dx%dx%s>\n",
                  number, computed ? 'x' : 'a', number, (int)low[0], (int)low[1], (int)low[2],
                  (int)high[0], (int)high[1], (int)high[2], (int)interior[0], (int)interior[1],
                  (int)interior[2], (int)from[0], (int)from[1], (int)from[2], type, type,
                  (int)to[0], (int)to[1], (int)to[2], type);
}

static void put_paddings(sf_buf *out, sf_dice *dice, const char *type, const int64_t *to)
{
    enum { PADDED = 4 };
    char all[64], turned[64], row[32], column[32];
    int64_t from[PADDED][3];
    snprintf(all, sizeof all, "tensor<%dx%dx%dx%s>", (int)to[0], (int)to[1], (int)to[2], type);
    snprintf(turned, sizeof turned, "tensor<%dx%dx%dx%s>", (int)to[2], (int)to[0], (int)to[1],
             type);
    snprintf(row, sizeof row, "tensor<%dx%dx%s>", (int)to[0], (int)to[1], type);
    snprintf(column, sizeof column, "tensor<%dx%s>", (int)to[2], type);
    sf_buf_puts(out, "func.func public @main(");
    for (int i = 0; i < PADDED; i++) {
        for (int d = 0; d < 3; d++)
            from[i][d] = sf_dice_below(dice, 3) ? to[d] : (to[d] + 1) / 2;
        sf_buf_printf(out, "%s%%a%d: tensor<%dx%dx%dx%s>", i ? ", " : "", i, (int)from[i][0],
                      (int)from[i][1], (int)from[i][2], type);
    }
    sf_buf_printf(out,
                  ") -> (%s, %s, %s, %s) {\n%%v = stablehlo.constant dense<%s> : tensor<%s>\n"
                  "%%zero = stablehlo.constant dense<0.0> : tensor<%s>\n",
                  all, turned, row, column, sf_dice_below(dice, 2) ? "0.0" : "0.5", type, type);
    for (int i = 0; i < PADDED; i++)
        put_padded(out, dice, type, i, to, from[i], sf_dice_below(dice, 2) > 0);
    sf_buf_printf(out,
                  "%%s = stablehlo.add %%p0, %%p1 : %s\n%%t = stablehlo.multiply %%s, %%p2 : %s\n"
                  "%%u = stablehlo.transpose %%t, dims = [2, 0, 1] : (%s) -> %s\n"
                  "%%r = stablehlo.reduce(%%t init: %%zero) applies stablehlo.add across "
                  "dimensions = [2] : (%s, tensor<%s>) -> %s\n"
                  "%%c = stablehlo.reduce(%%p3 init: %%zero) applies stablehlo.add across "
                  "dimensions = [0, 1] : (%s, tensor<%s>) -> %s\n"
                  "return %%s, %%u, %%r, %%c : %s, %s, %s, %s\n}\n",
                  all, all, all, turned, all, type, row, all, type, column, all, turned, row,
                  column);
}

static void test_paddings(void **state)
{
    (void)state;
    static const char *const types[] = {"f32", "bf16", "f64"};
    static const int64_t shapes[][3] = {
        {2, 3, 5}, {4, 8, 16}, {1, 64, 33}, {7, 1, 4}, {3, 40, 1024}};
    sf_dice dice = {5};
    for (int i = 0; i < 60; i++) {
        sf_buf text = {0};
        put_paddings(&text, &dice, types[i % 3], shapes[i % 5]);
        check_text(text.text, NULL);
        sf_buf_free(&text);
    }
}

/* Products of matrices whose rows are no multiples of 16 bytes, either way round, large enough that libraries get copies. */
static const char odd_products[] =
    "func.func public @main(%%a: tensor<2x%dx%dx%s>, %%b: tensor<2x%dx%dx%s>, %%c: "
    "tensor<%dx%dx%s>) -> "
    "(tensor<2x%dx%dx%s>, tensor<%dx2x%dx%s>) {\n"
    "%%r = stablehlo.dot_general %%a, %%b, batching_dims = [0] x [0], contracting_dims = [%d] x "
    "[%d] : "
    "(tensor<2x%dx%dx%s>, tensor<2x%dx%dx%s>) -> tensor<2x%dx%dx%s>\n"
    "%%s = stablehlo.dot_general %%c, %%b, contracting_dims = [1] x [%d] : (tensor<%dx%dx%s>, "
    "tensor<2x%dx%dx%s>) -> tensor<%dx2x%dx%s>\n"
    "return %%r, %%s : tensor<2x%dx%dx%s>, tensor<%dx2x%dx%s>\n}\n";

static void test_odd_products(void **state)
{
    (void)state;
    static const int sizes[][3] = {{1024, 13, 1024}, {1024, 1000, 13}, {13, 1024, 1024}};
    for (int way = 0; way < 4; way++) {
        int M = sizes[way % 3][0], N = sizes[way % 3][1], K = sizes[way % 3][2];
        bool a = way & 1, b = way >> 1;
        const char *t = way % 3 ? "bf16" : "f16";
        static char text[4096];
        snprintf(text, sizeof text, odd_products, a ? K : M, a ? M : K, t, b ? N : K, b ? K : N, t,
                 M, K, t, M, N, t, M, N, t, a ? 1 : 2, b ? 2 : 1, a ? K : M, a ? M : K, t,
                 b ? N : K, b ? K : N, t, M, N, t, b ? 2 : 1, M, K, t, b ? N : K, b ? K : N, t, M,
                 N, t, M, N, t, M, N, t);
        check_text(text, NULL);
    }
}

/* Sums over a middle dimension, beside what neighbouring rows share: it is loaded along what is summed. */
static const char middle_sums[] =
    "func.func public @main(%%a: tensor<%dx%dx%dxf32>, %%b: tensor<%dx%dxf32>, %%c: "
    "tensor<%dx%dxf32>) -> (tensor<%dx%dxf32>, "
    "tensor<%dx%dx%dxf32>) {\n"
    "%%x = stablehlo.broadcast_in_dim %%b, dims = [0, 1] : (tensor<%dx%dxf32>) -> "
    "tensor<%dx%dx%dxf32>\n"
    "%%y = stablehlo.multiply %%a, %%x : tensor<%dx%dx%dxf32>\n"
    "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%%s = stablehlo.reduce(%%y init: %%z) applies stablehlo.add across dimensions = [1] : "
    "(tensor<%dx%dx%dxf32>, tensor<f32>) -> "
    "tensor<%dx%dxf32>\n"
    "%%e = stablehlo.broadcast_in_dim %%c, dims = [0, 2] : (tensor<%dx%dxf32>) -> "
    "tensor<%dx%dx%dxf32>\n"
    "%%f = stablehlo.add %%a, %%e : tensor<%dx%dx%dxf32>\n"
    "return %%s, %%f : tensor<%dx%dxf32>, tensor<%dx%dx%dxf32>\n}\n";

static void test_middle_sums(void **state)
{
    (void)state;
    static const int sizes[][3] = {
        {4, 1024, 16}, {130, 64, 16}, {3, 200, 48}, {7, 33, 20}, {5, 40, 15}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int n = sizes[i][0], m = sizes[i][1], k = sizes[i][2];
        static char text[4096];
        snprintf(text, sizeof text, middle_sums, n, m, k, n, m, n, k, n, k, n, m, k, n, m, n, m, k,
                 n, m, k, n, m, k, n, k, n, k, n, m, k, n, m, k, n, k, n, m, k);
        check_text(text, NULL);
    }
}

/* Windows that a library does not have the border of: forward, for the image and for the window. */
static const char bordered[] =
    "func.func public @main(%%x: tensor<2x9x8x%dx%s>, %%w: tensor<3x3x%dx%dx%s>, %%y: "
    "tensor<2x5x4x%dx%s>) -> (tensor<2x5x4x%dx%s>, tensor<2x9x8x%dx%s>, tensor<3x3x%dx%dx%s>) {\n"
    "%%a = stablehlo.convolution(%%x, %%w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
    "window = {stride = [2, 2], pad = [[1, 1], [0, 1]]} {batch_group_count = 1 : i64, "
    "feature_group_count = 1 : i64} : (tensor<2x9x8x%dx%s>, tensor<3x3x%dx%dx%s>) -> "
    "tensor<2x5x4x%dx%s>\n"
    "%%b = stablehlo.convolution(%%y, %%w) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], "
    "window = {pad = [[1, 1], [2, 1]], lhs_dilate = [2, 2], reverse = [1, 1]} {batch_group_count = "
    "1 : i64, feature_group_count = 1 : i64} : (tensor<2x5x4x%dx%s>, tensor<3x3x%dx%dx%s>) -> "
    "tensor<2x9x8x%dx%s>\n"
    "%%c = stablehlo.convolution(%%x, %%y) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], "
    "window = {pad = [[1, 1], [0, 1]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, "
    "feature_group_count = 1 : i64} : (tensor<2x9x8x%dx%s>, tensor<2x5x4x%dx%s>) -> "
    "tensor<3x3x%dx%dx%s>\n"
    "return %%a, %%b, %%c : tensor<2x5x4x%dx%s>, tensor<2x9x8x%dx%s>, tensor<3x3x%dx%dx%s>\n}\n";

static void test_borders(void **state)
{
    (void)state;
    static const char *const types[] = {"f16", "f32", "f64", "bf16"};
    static const int channels[][2] = {{8, 16}, {3, 8}, {16, 5}, {12, 4}};
    for (int i = 0; i < 16; i++) {
        const char *t = types[i / 4];
        int c = channels[i % 4][0], k = channels[i % 4][1];
        static char text[4096];
        snprintf(text, sizeof text, bordered, c, t, c, k, t, k, t, k, t, c, t, c, k, t, c, t, c, k,
                 t, k, t, k, t, c, k, t, c, t, c, t, k, t, c, k, t, k, t, c, t, c, k, t);
        check_text(text, NULL);
    }
}

/* Windows of one place along the last dimension, whose elements a thread may take together; equal elements: the first is selected. */
static const char largest[] =
    "func.func public @main(%%u: tensor<2x9x8x%dx%s>, %%y: tensor<2x5x4x%dx%s>) -> "
    "(tensor<2x5x4x%dx%s>, tensor<2x9x8x%dx%s>) {\n"
    "%%x = stablehlo.floor %%u : tensor<2x9x8x%dx%s>\n"
    "%%z = stablehlo.constant dense<0.5> : tensor<%s>\n"
    "%%a = \"stablehlo.reduce_window\"(%%x, %%z) <{padding = dense<[[0, 0], [1, 1], [0, 1], [0, "
    "0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = "
    "array<i64: 1, 2, 2, 1>}> ({\n"
    "^bb0(%%p: tensor<%s>, %%q: tensor<%s>):\n"
    "%%m = stablehlo.maximum %%p, %%q : tensor<%s>\n"
    "stablehlo.return %%m : tensor<%s>\n"
    "}) : (tensor<2x9x8x%dx%s>, tensor<%s>) -> tensor<2x5x4x%dx%s>\n"
    "%%b = \"stablehlo.select_and_scatter\"(%%x, %%y, %%z) <{padding = dense<[[0, 0], [1, 1], [0, "
    "1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = "
    "array<i64: 1, 2, 2, 1>}> ({\n"
    "^bb0(%%p: tensor<%s>, %%q: tensor<%s>):\n"
    "%%m = stablehlo.compare GE, %%p, %%q, FLOAT : (tensor<%s>, tensor<%s>) -> tensor<i1>\n"
    "stablehlo.return %%m : tensor<i1>\n"
    "}, {\n"
    "^bb0(%%p: tensor<%s>, %%q: tensor<%s>):\n"
    "%%m = stablehlo.add %%p, %%q : tensor<%s>\n"
    "stablehlo.return %%m : tensor<%s>\n"
    "}) : (tensor<2x9x8x%dx%s>, tensor<2x5x4x%dx%s>, tensor<%s>) -> tensor<2x9x8x%dx%s>\n"
    "return %%a, %%b : tensor<2x5x4x%dx%s>, tensor<2x9x8x%dx%s>\n}\n";

static void test_pools(void **state)
{
    (void)state;
    static const char *const types[] = {"f16", "f32", "f64", "bf16"};
    static const int channels[] = {16, 3, 4, 1};
    for (int i = 0; i < 16; i++) {
        const char *t = types[i / 4];
        int c = channels[i % 4];
        static char text[4096];
        snprintf(text, sizeof text, largest, c, t, c, t, c, t, c, t, c, t, t, t, t, t, t, c, t, t,
                 c, t, t, t, t, t, t, t, t, t, c, t, c, t, t, c, t, c, t, c, t);
        check_text(text, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_has_a_generator),
        cmocka_unit_test(test_every_op),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_scatters),
        cmocka_unit_test(test_paddings),
        cmocka_unit_test(test_odd_products),
        cmocka_unit_test(test_middle_sums),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_pools),
    };
    return cmocka_run_group_tests(tests, open_pools, close_pools);
}
