/* Noise of the size of rounding: where it is, where it is not, how large it is, and what it excuses. */
#include "sheaf/sheaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/verify/compare.h"
#include "api/verify/noise.h"
#include "api/verify/noise_range.h"
#include "op/node_builder.h"

static sf_graph *load(const char *text)
{
    sf_graph *graph;
    sf_diag *diag = sf_diag_new();
    if (sf_load_text(text, strlen(text), "step.mlir", NULL, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

/* A step of one result, its values, and the effect of noise on them. */
typedef struct trial {
    sf_graph *graph;
    sf_arena arena;
    sf_tensor arguments[2], expected;
    sf_noise_range noise;
} trial;

static void fill(trial *t, double (*value)(int64_t))
{
    for (uint32_t i = 0; i < t->graph->top->narguments; i++) {
        const sf_type *type = sf_argument_type(t->graph, i);
        t->arguments[i] = (sf_tensor){
            .type = type, .data = sf_arena_alloc(&t->arena, (size_t)sf_type_bytes(type))};
        for (int64_t k = 0; k < type->count; k++)
            sf_store_f64(type->dtype, t->arguments[i].data, k, value(k + 7 * i));
    }
}

static void open_trial(trial *t, const char *text, double (*value)(int64_t))
{
    *t = (trial){.graph = load(text)};
    sf_runner_options options = {.with = {.threads = 1}};
    sf_runner runner;
    sf_tensor result;
    fill(t, value);
    assert_int_equal(sf_runner_open(t->graph, &options, NULL, &runner), SF_OK);
    for (uint32_t i = 0; i < t->graph->top->narguments; i++)
        assert_int_equal(sf_engine_write(runner.engine, i, t->arguments[i].data, NULL), SF_OK);
    assert_int_equal(sf_engine_step(runner.engine, NULL), SF_OK);
    assert_int_equal(sf_engine_see(runner.engine, 0, NULL, &result), SF_OK);
    t->expected = (sf_tensor){
        .type = result.type,
        .data = sf_arena_copy(&t->arena, result.data, (size_t)sf_type_bytes(result.type))};
    sf_runner_close(&runner);
    sf_noise_range_init(t->graph, &options, &t->arena, &t->noise);
    assert_int_equal(sf_noise_range_widen(&t->noise, t->arguments, &t->expected, NULL), SF_OK);
    assert_int_equal(sf_graph_verify(t->noise.noisy, NULL), SF_OK);
}

static void close_trial(trial *t)
{
    sf_noise_range_close(&t->noise);
    sf_graph_free(t->graph);
    sf_arena_free(&t->arena);
}

static double waves(int64_t i)
{
    return sin((double)(3 * i * i + i + 1));
}

static double counts(int64_t i)
{
    return (double)(i % 5);
}

static double large(int64_t i)
{
    return 1000 * waves(i);
}

/* Few of them, so that products stay small whole numbers, which have no noise of their own. */
static double bits(int64_t i)
{
    return i % 11 == 0;
}

#define DOT(type)                                                                                  \
    "func.func public @main(%a: tensor<6x32x" type ">, %b: tensor<32x5x" type                      \
    ">) -> tensor<6x5x" type ">\n"                                                                 \
    "{ %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<6x32x" type       \
    ">, tensor<32x5x" type ">) -> tensor<6x5x" type ">\n return %r : tensor<6x5x" type "> }\n"
#define REDUCE(op, start)                                                                          \
    "func.func public @main(%a: tensor<8x64xf32>) -> tensor<8xf32> {\n"                            \
    "%z = stablehlo.constant dense<" start "> : tensor<f32>\n"                                     \
    "%r = stablehlo.reduce(%a init: %z) applies stablehlo." op " across dimensions = [1] : "       \
    "(tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>\n return %r : tensor<8xf32> }\n"
#define SUM REDUCE("add", "0.0")

#define ASKED(type, a, b, out)                                                                     \
    "stablehlo.dot_general " a ", contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT], "  \
    "algorithm = <lhs_precision_type = " type ", rhs_precision_type = " type                       \
    ", accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "                \
    "num_primitive_operations = 1, allow_imprecise_accumulation = false> : (" b ") -> " out "\n"
#define DOT_ASKED(type)                                                                            \
    "func.func public @main(%a: tensor<6x32xf32>, %b: tensor<32x5xf32>) -> tensor<6x5xf32>\n"      \
    "{ %r = " ASKED(type, "%a, %b", "tensor<6x32xf32>, tensor<32x5xf32>",                          \
                    "tensor<6x5xf32>") "return %r : tensor<6x5xf32> }\n"
/* The sum of weights times their gradients, which are a product; the weights are of another, which may ask for less. */
#define ROW_SUM(type)                                                                              \
    "func.func public @main(%a: tensor<6x32xbf16>, %b: tensor<32x5xbf16>) -> tensor<6xf32> {\n"    \
    "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                           \
    "%p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<6x32xbf16>, "       \
    "tensor<32x5xbf16>) -> tensor<6x5xbf16>\n"                                                     \
    "%g = stablehlo.convert %p : (tensor<6x5xbf16>) -> tensor<6x5xf32>\n"                          \
    "%f = stablehlo.convert %b : (tensor<32x5xbf16>) -> tensor<32x5xf32>\n"                        \
    "%s = " ASKED(type, "%a, %f", "tensor<6x32xbf16>, tensor<32x5xf32>",                           \
                  "tensor<6x5xf32>") "%w = stablehlo.logistic %s : tensor<6x5xf32>\n"              \
                                     "%x = stablehlo.multiply %w, %g : tensor<6x5xf32>\n"          \
                                     "%r = stablehlo.reduce(%x init: %z) applies stablehlo.add "   \
                                     "across dimensions = [1] : "                                  \
                                     "(tensor<6x5xf32>, tensor<f32>) -> tensor<6xf32>\n return "   \
                                     "%r : tensor<6xf32> }\n"

static const char element_wise[] =
    "func.func public @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {\n"
    "%b = stablehlo.exponential %a : tensor<8x8xf32>\n"
    "%c = stablehlo.add %b, %a : tensor<8x8xf32>\n return %c : tensor<8x8xf32> }\n";
static const char loop[] =
    "func.func public @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
    "%z = stablehlo.constant dense<0> : tensor<i32>\n"
    "%n = stablehlo.constant dense<2000> : tensor<i32>\n"
    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "%r:2 = stablehlo.while(%i = %z, %x = %a) : tensor<i32>, tensor<4x4xf32> cond {\n"
    "%c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "stablehlo.return %c : tensor<i1> } do {\n"
    "%y = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, "
    "tensor<4x4xf32>) -> tensor<4x4xf32>\n"
    "%t = stablehlo.tanh %y : tensor<4x4xf32>\n"
    "%k = stablehlo.add %i, %one : tensor<i32>\n"
    "stablehlo.return %k, %t : tensor<i32>, tensor<4x4xf32> }\n return %r#1 : tensor<4x4xf32> }\n";

/* How much of its size an element moves: at least once, and at most. */
static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        double (*value)(int64_t);
        double least, most; /* of the largest move, relative to the largest result */
    } cases[] = {
        {"product", DOT("f32"), waves, 1e-6, 2e-4},
        {"product in double", DOT("f64"), waves, 1e-15, 1e-13},
        {"product in 16 bits", DOT("bf16"), waves, 5e-3, 0.2},
        {"product that asks for 16 bits", DOT_ASKED("bf16"), waves, 5e-3, 0.2},
        {"product that asks for tf32", DOT_ASKED("tf32"), waves, 1e-6, 2e-4},
        {"sum of weights times their gradients", ROW_SUM("bf16"), bits, 2e-3, 0.2},
        {"such a sum in full", ROW_SUM("f32"), bits, 1e-6, 2e-4},
        {"sum", SUM, waves, 1e-6, 2e-4},
        {"sum of large numbers", SUM, large, 1e-6, 2e-4},
        {"sum of counts", SUM, counts, 0, 0},
        {"product of counts", DOT("f32"), counts, 0, 0},
        {"largest of all", REDUCE("maximum", "0xFF800000"), waves, 0, 0},
        {"element by element", element_wise, waves, 0, 0},
        {"sum in a loop that stays", loop, waves, 1e-8, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trial t;
        open_trial(&t, cases[i].text, cases[i].value);
        double moved = 0, size = 0;
        for (int64_t k = 0; k < t.expected.type->count; k++) {
            moved = fmax(moved, (double)t.noise.at[0][k]);
            size = fmax(size, fabs(sf_get_f64(&t.expected, k)));
        }
        if (moved < cases[i].least * size || moved > cases[i].most * size)
            fail_msg("%s: moved by %g of %g", cases[i].name, moved, size);
        close_trial(&t);
    }
}

/* Two runs of a pair are on both sides of the one without noise. */
static void test_pairs(void **state)
{
    (void)state;
    trial t;
    open_trial(&t, SUM, waves);
    double sums[8] = {0};
    for (int run = 0; run < 2; run++) {
        sf_tensor result;
        assert_int_equal(sf_noise_range_run(&t.noise, t.arguments, run, &result, NULL), SF_OK);
        for (int k = 0; k < 8; k++)
            sums[k] += sf_get_f64(&result, k) - sf_get_f64(&t.expected, k);
    }
    for (int k = 0; k < 8; k++)
        assert_true(fabs(sums[k]) < 0.1 * (double)t.noise.at[0][k] + 1e-6);
    assert_int_equal(t.noise.runs, 4);
    assert_int_equal(t.noise.pairs, 1);
    sf_noise_range_clear(&t.noise);
    assert_int_equal(t.noise.pairs, 0);
    assert_true(t.noise.at[0][3] == 0);
    close_trial(&t);
}

/* Rows that cancel: to nothing but rounding, to little, and not. */
static double cancelling(int64_t i)
{
    int64_t row = i / 64, column = i % 64;
    double rest = row < 4 ? 0 : row < 6 ? 1e-7 : 0.5;
    return (column % 2 ? 1 : -1) * (1.1 + 0.01 * (double)(column / 2)) + rest / 64;
}

/* The sign of a sum is unstable where the sum is rounding, and only there. */
static void test_finds_jumps(void **state)
{
    (void)state;
    static const char text[] =
        "func.func public @main(%a: tensor<8x64xf32>) -> tensor<8xf32> {\n"
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : "
        "(tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>\n"
        "%s = stablehlo.sign %r : tensor<8xf32>\n return %s : tensor<8xf32> }\n";
    trial t;
    open_trial(&t, text, cancelling);
    assert_int_equal(sf_noise_range_widen(&t.noise, t.arguments, &t.expected, NULL), SF_OK);
    sf_unstable unstable;
    sf_comparison comparison = {.graph = t.graph,
                                .arguments = t.arguments,
                                .ours = &t.expected,
                                .theirs = &t.expected,
                                .tolerance = 1e-4};
    sf_find_unstable(&comparison, t.noise.at, &t.arena, &unstable);
    assert_int_equal(unstable.count, 6);
    for (int k = 0; k < 8; k++)
        assert_int_equal(t.noise.at[0][k] > 0, k < 6);
    close_trial(&t);
}

/* Comparing, with made-up deviations. */

enum { ELEMENTS = 64 };

static const char weights[] =
    "func.func public @main(%p: tensor<64xf32> {jax.buffer_donor = true}) -> tensor<64xf32> {\n"
    "%r = stablehlo.negate %p : tensor<64xf32>\n return %r : tensor<64xf32> }\n";

typedef struct made_up {
    const char *name;
    int unstable; /* how many elements, from the first on, have a deviation of 0.5 */
    int wrong;    /* so many elements, */
    int from;     /* from this one on, are */
    double by;    /* too large by this */
    bool holds, differs;
    int excused;
} made_up;

static sf_difference judge(const made_up *made)
{
    sf_graph *graph = load(weights);
    sf_arena arena = {0};
    float before[ELEMENTS], theirs[ELEMENTS], ours[ELEMENTS], noise[ELEMENTS] = {0};
    float *spreads[] = {noise};
    const sf_type *type = sf_argument_type(graph, 0);
    for (int i = 0; i < ELEMENTS; i++) {
        before[i] = 2;
        theirs[i] = ours[i] = 1;
        noise[i] = i < made->unstable ? 0.5f : 0;
        if (i >= made->from && i < made->from + made->wrong)
            ours[i] = (float)(1 + made->by);
    }
    const sf_tensor argument = {.type = type, .data = before}, a = {.type = type, .data = ours},
                    b = {.type = type, .data = theirs};
    sf_unstable unstable;
    sf_comparison comparison = {
        .graph = graph, .arguments = &argument, .ours = &a, .theirs = &b, .tolerance = 1e-4};
    graph->arguments[0].next = 0;
    sf_find_unstable(&comparison, spreads, &arena, &unstable);
    comparison.unstable = &unstable;
    sf_difference out;
    sf_compare(&comparison, &arena, &out);
    assert_int_equal(out.unstable, made->unstable);
    out.name = NULL;
    sf_arena_free(&arena);
    sf_graph_free(graph);
    return out;
}

static void test_excuses(void **state)
{
    (void)state;
    static const made_up cases[] = {
        {"equal", 0, 0, 0, 0, true, false, 0},
        {"rounding", 0, 8, 0, 2e-7, true, true, 0},
        {"wrong, no noise", 0, 1, 5, 0.4, false, true, 0},
        {"unstable", 8, 8, 0, 0.4, true, true, 8},
        {"unstable, twice as far", 8, 8, 0, 0.9, true, true, 8},
        {"unstable, but farther", 8, 1, 3, 2, false, true, 0},
        {"stable, beside unstable ones", 8, 1, 20, 0.4, false, true, 0},
        {"one in 16 that noise missed", 32, 2, 40, 0.4, true, true, 2},
        {"more than one in 16", 32, 3, 40, 0.4, false, true, 0},
        {"missed, but farther than any", 32, 1, 40, 2, false, true, 0},
        {"unstable, and not updated", 64, 64, 0, 1, false, true, 64},
        {"unstable, most as before", 64, 60, 0, 1, true, true, 60},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_difference got = judge(&cases[i]);
        if (sf_difference_holds(&got) != cases[i].holds || got.differs != cases[i].differs ||
            got.excused != cases[i].excused || (got.error == 0 && got.excused == 0) == got.differs)
            fail_msg("%s: error %g, differs %d, excused %d", cases[i].name, got.error, got.differs,
                     (int)got.excused);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_finds_jumps),
        cmocka_unit_test(test_excuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
