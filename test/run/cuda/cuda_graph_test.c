/* Steps as one graph, on the emulated GPU, which fails waits while a graph is captured: which steps
 * become one, how often the host synchronises and launches, and that all give the oracle's bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "prog/check_program.h"
#include "run/cuda/cuda.h"
#include "run/cuda/cuda_target.h"
#include "run/engine/engine_backend.h"
#include "run/runner.h"
#include "sheaf/sheaf.h"
#include "support/emulate.h"
#include "support/run.h"

/* The engine's calls of its device in steps. */
static struct {
    int gets, launches, draws, replays;
} asked;
static const sf_device_table *host;

static sf_status count_get(sf_device *d, void *to, const char *from, int64_t bytes, sf_diag *diag)
{
    asked.gets++;
    return host->get(d, to, from, bytes, diag);
}

static sf_status count_launch(sf_device *d, void *function, int64_t blocks, int threads,
                              void **params, sf_diag *diag)
{
    asked.launches++;
    return host->launch(d, function, blocks, threads, params, diag);
}

static sf_status count_begin(sf_device *d, sf_diag *diag)
{
    asked.draws++;
    return host->begin(d, diag);
}

static sf_status count_replay(sf_device *d, void *graph, sf_diag *diag)
{
    asked.replays++;
    return host->replay(d, graph, diag);
}

/* A step that iterates over a vector of 8, which stays, as often as `bound`, a tensor<i32>. The
 * body reads the counter. */
#define STEP(bound, inner)                                                                         \
    "func.func public @main(%x: tensor<8xf32> {tf.aliasing_output = 0 : i32}, %n: tensor<i32>)\n"  \
    "    -> tensor<8xf32> {\n"                                                                     \
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"                                        \
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"                                         \
    "  %half = stablehlo.constant dense<0.5> : tensor<8xf32>\n" bound                              \
    "  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<8xf32>\n   cond {\n"      \
    "    %c = stablehlo.compare LT, %i, %bound : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"       \
    "    stablehlo.return %c : tensor<i1>\n  } do {\n"                                             \
    "    %j = stablehlo.add %i, %one : tensor<i32>\n"                                              \
    "    %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>\n"                               \
    "    %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8xf32>\n"         \
    "    %h = stablehlo.multiply %v, %half : tensor<8xf32>\n" inner                                \
    "    %w = stablehlo.add %in, %b : tensor<8xf32>\n"                                             \
    "    stablehlo.return %j, %w : tensor<i32>, tensor<8xf32>\n  }\n"                              \
    "  return %r#1 : tensor<8xf32>\n}\n"
#define TIMES(count) "  %bound = stablehlo.constant dense<" count "> : tensor<i32>\n"
#define GIVEN "  %bound = stablehlo.add %n, %zero : tensor<i32>\n"
#define PLAIN "    %in = stablehlo.add %h, %half : tensor<8xf32>\n"
#define NESTED                                                                                     \
    "    %q:2 = stablehlo.while(%k = %zero, %u = %h) : tensor<i32>, tensor<8xf32>\n   cond {\n"    \
    "      %three = stablehlo.constant dense<3> : tensor<i32>\n"                                   \
    "      %c = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"     \
    "      stablehlo.return %c : tensor<i1>\n    } do {\n"                                         \
    "      %l = stablehlo.add %k, %one : tensor<i32>\n"                                            \
    "      %t = stablehlo.subtract %half, %u : tensor<8xf32>\n"                                    \
    "      stablehlo.return %l, %t : tensor<i32>, tensor<8xf32>\n    }\n"                          \
    "    %in = stablehlo.add %q#1, %half : tensor<8xf32>\n"
#define BRANCH                                                                                     \
    "    %in = \"stablehlo.case\"(%n) ({\n"                                                        \
    "      stablehlo.return %h : tensor<8xf32>\n    }, {\n"                                        \
    "      %t = stablehlo.subtract %half, %h : tensor<8xf32>\n"                                    \
    "      stablehlo.return %t : tensor<8xf32>\n    }) : (tensor<i32>) -> tensor<8xf32>\n"

enum { STEPS = 4, GIVEN_TURNS = 4 };

typedef struct trial {
    const char *name, *text;
    int64_t turns; /* of the first loop, as the program has it */
    bool draws;
    int gets; /* of the host, in a step that is no graph */
} trial;

static const trial trials[] = {
    {"known", STEP(TIMES("5"), PLAIN), 5, true, 0},
    {"none", STEP(TIMES("0"), PLAIN), 0, true, 0},
    {"one in another", STEP(TIMES("4"), NESTED), 4, true, 0},
    {"too long to draw", STEP(TIMES("30000"), PLAIN), 30000, false, 0},
    {"given", STEP(GIVEN, PLAIN), -1, false, GIVEN_TURNS + 1},
    {"a branch inside", STEP(TIMES("5"), BRANCH), 5, false, 5},
};

/* Loops stay; of what is not known option assume-trip-count says something else than what is. */
static const sf_load_options options = {
    .size = sizeof options, .unroll = -1, .assume_trip_count = 7};

static sf_graph *load(const char *text)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    if (sf_load_text(text, strlen(text), "step", &options, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

static void fill(sf_engine *engine)
{
    float x[8];
    int32_t turns = GIVEN_TURNS;
    for (int i = 0; i < 8; i++)
        x[i] = (float)i - 2.5F;
    assert_int_equal(sf_engine_write(engine, 0, x, NULL), SF_OK);
    assert_int_equal(sf_engine_write(engine, 1, &turns, NULL), SF_OK);
}

static const sf_inst *find_loop(const sf_program *p)
{
    for (size_t i = 0; i < p->ninsts; i++)
        if (p->insts[i].kind == SF_INST_WHILE)
            return &p->insts[i];
    return NULL;
}

static void run_steps(const trial *t, sf_engine *engine, sf_device_table *counting)
{
    cuda *c = engine->self;
    host = c->device->table;
    *counting = *host;
    counting->get = count_get;
    counting->launch = count_launch;
    counting->begin = count_begin;
    counting->replay = count_replay;
    c->device->table = counting;
    memset(&asked, 0, sizeof asked);
    for (int s = 0, launched = 0; s < STEPS; s++, launched = asked.launches) {
        assert_int_equal(sf_engine_step(engine, NULL), SF_OK);
        bool launches = !t->draws || s <= 2;
        assert_true(asked.launches > launched ? launches : !launches || t->turns == 0);
    }
    assert_int_equal(asked.draws, t->draws);
    assert_int_equal(asked.replays, t->draws ? STEPS - 2 : 0);
    assert_int_equal(asked.gets, t->gets * STEPS);
    assert_true((c->graph != NULL) == t->draws);
}

static void test_drawn(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const trial *t = &trials[i];
        sf_graph *graph = load(t->text);
        sf_runner oracle = test_open_engine(graph, "oracle", 1, NULL),
                  device = test_open_engine(graph, "cuda", 1, NULL);
        sf_device_table counting;
        float want[8], got[8];
        const sf_inst *loop = find_loop(device.program);
        assert_int_equal(loop->nest->trips, t->turns);
        assert_int_equal((int64_t)loop->nest->runs[1], t->turns < 0 ? 7 : t->turns);
        fill(oracle.engine);
        fill(device.engine);
        run_steps(t, device.engine, &counting);
        for (int s = 0; s < STEPS; s++)
            assert_int_equal(sf_engine_step(oracle.engine, NULL), SF_OK);
        assert_int_equal(sf_engine_read(oracle.engine, 0, want, NULL), SF_OK);
        assert_int_equal(sf_engine_read(device.engine, 0, got, NULL), SF_OK);
        if (memcmp(want, got, sizeof want) != 0)
            fail_msg("%s: %g, not %g", t->name, (double)got[0], (double)want[0]);
        sf_runner_close(&device);
        sf_runner_close(&oracle);
        sf_graph_free(graph);
    }
}

/* Steps of JAX with loops over layers and over time, forward and backward. */
static void test_scanned(void **state)
{
    (void)state;
    static const char *const steps[] = {"micro/gpt-scan-micro", "loops/loop-lstm-40"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char path[100];
        snprintf(path, sizeof path, "test/data/%s.stablehlo.mlir.xz", steps[i]);
        sf_graph *graph = NULL;
        sf_diag *diag = sf_diag_new();
        if (sf_load(path, &options, diag, &graph) == SF_EUNSUPPORTED)
            skip();
        assert_non_null(graph);
        sf_runner runner = test_open_engine(graph, "cuda", 1, NULL);
        assert_non_null(find_loop(runner.program));
        for (int s = 0; s < 3; s++)
            assert_int_equal(sf_engine_step(runner.engine, diag), SF_OK);
        if (!((const cuda *)runner.engine->self)->graph)
            fail_msg("%s is no graph", path);
        sf_runner_close(&runner);
        sf_graph_free(graph);
        sf_diag_free(diag);
    }
}

int main(void)
{
    test_emulate_gpu();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawn),
                                       cmocka_unit_test(test_scanned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
