/* The search: plans that people know are found where they belong, memory is obeyed and costs time, no recipe
 * that fits is faster, and nothing depends on the number of threads. */
#include "search/search.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/guard.h"
#include "base/mem.h"
#include "run/runner.h"
#include "search/known.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"
#include "support/sanitized.h"

/* A step of `layers` blocks x + relu(x W1) W2 on a batch of `rows`, with momentum, as text. */
typedef struct mlp {
    int rows, width, inner, layers;
} mlp;

static void put_product(sf_buf *out, const char *result, const char *a, const char *b,
                        const char *dims, int n, int k, int m, bool a_flipped, bool b_flipped)
{
    sf_buf_printf(out,
                  "%%%s = stablehlo.dot_general %%%s, %%%s, contracting_dims = %s : "
                  "(tensor<%dx%dxf32>, tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n",
                  result, a, b, dims, a_flipped ? k : n, a_flipped ? n : k, b_flipped ? m : k,
                  b_flipped ? k : m, n, m);
}

#define NAME(format, ...)                                                                          \
    __extension__({                                                                                \
        char *name_at = names[next++ % 8];                                                         \
        snprintf(name_at, sizeof names[0], format, __VA_ARGS__);                                   \
        name_at;                                                                                   \
    })

static void put_forward(const mlp *m, int l, sf_buf *out)
{
    char names[8][24];
    int next = 0, n = m->rows, h = m->width, f = m->inner;
    put_product(out, NAME("h%d", l), NAME("x%d", l), NAME("W1_%d", l), "[1] x [0]", n, h, f, false,
                false);
    sf_buf_printf(out, "%%z%d = stablehlo.constant dense<0.0> : tensor<%dx%dxf32>\n", l, n, f);
    sf_buf_printf(out, "%%a%d = stablehlo.maximum %%h%d, %%z%d : tensor<%dx%dxf32>\n", l, l, l, n,
                  f);
    put_product(out, NAME("o%d", l), NAME("a%d", l), NAME("W2_%d", l), "[1] x [0]", n, f, h, false,
                false);
    sf_buf_printf(out, "%%x%d = stablehlo.add %%x%d, %%o%d : tensor<%dx%dxf32>\n", l + 1, l, l, n,
                  h);
}

static void put_backward(const mlp *m, int l, sf_buf *out)
{
    char names[8][24];
    int next = 0, n = m->rows, h = m->width, f = m->inner;
    put_product(out, NAME("gW2_%d", l), NAME("a%d", l), NAME("g%d", l + 1), "[0] x [0]", f, n, h,
                true, false);
    put_product(out, NAME("ga%d", l), NAME("g%d", l + 1), NAME("W2_%d", l), "[1] x [1]", n, h, f,
                false, true);
    sf_buf_printf(out,
                  "%%c%d = stablehlo.compare GT, %%h%d, %%z%d : (tensor<%dx%dxf32>, "
                  "tensor<%dx%dxf32>) -> tensor<%dx%dxi1>\n",
                  l, l, l, n, f, n, f, n, f);
    sf_buf_printf(out,
                  "%%gh%d = stablehlo.select %%c%d, %%ga%d, %%z%d : tensor<%dx%dxi1>, "
                  "tensor<%dx%dxf32>\n",
                  l, l, l, l, n, f, n, f);
    put_product(out, NAME("gW1_%d", l), NAME("x%d", l), NAME("gh%d", l), "[0] x [0]", h, n, f, true,
                false);
    put_product(out, NAME("gx%d", l), NAME("gh%d", l), NAME("W1_%d", l), "[1] x [1]", n, f, h,
                false, true);
    sf_buf_printf(out, "%%g%d = stablehlo.add %%g%d, %%gx%d : tensor<%dx%dxf32>\n", l, l + 1, l, n,
                  h);
}

/* Weight `i` of 2 * layers; the types of all results that are state, each with a comma. */
static void put_type(const mlp *m, int i, sf_buf *out)
{
    int h = m->width, f = m->inner;
    sf_buf_printf(out, "tensor<%dx%dxf32>", i % 2 ? f : h, i % 2 ? h : f);
}

static void put_signature(const mlp *m, sf_buf *out)
{
    int weights = 2 * m->layers;
    sf_buf_printf(out, "module @mlp {\nfunc.func public @main(");
    for (int i = 0; i < 2 * weights; i++) {
        int w = i % weights;
        sf_buf_printf(out, "%%%sW%d_%d: ", i < weights ? "" : "m", w % 2 + 1, w / 2);
        put_type(m, w, out);
        sf_buf_printf(out, " {tf.aliasing_output = %d : i32} loc(\"%s['W%d_%d']\"), ", i,
                      i < weights ? "params" : "opt", w % 2 + 1, w / 2);
    }
    sf_buf_printf(out,
                  "%%x0: tensor<%dx%dxf32> loc(\"batch['x']\"), %%y: tensor<%dx%dxf32> "
                  "loc(\"batch['y']\")) -> (",
                  m->rows, m->width, m->rows, m->width);
    for (int i = 0; i < 2 * weights; i++) {
        put_type(m, i % weights, out);
        sf_buf_printf(out, ", ");
    }
    sf_buf_printf(out, "tensor<f32>) {\n");
}

static void put_update(const mlp *m, sf_buf *out)
{
    int weights = 2 * m->layers;
    for (int i = 0; i < weights; i++) {
        int which = i % 2 + 1, l = i / 2;
        sf_buf_printf(out, "%%nW%d_%d = stablehlo.add %%mW%d_%d, %%gW%d_%d : ", which, l, which, l,
                      which, l);
        put_type(m, i, out);
        sf_buf_printf(out, "\n%%uW%d_%d = stablehlo.subtract %%W%d_%d, %%nW%d_%d : ", which, l,
                      which, l, which, l);
        put_type(m, i, out);
        sf_buf_printf(out, "\n");
    }
    sf_buf_printf(out, "return ");
    for (int i = 0; i < 2 * weights; i++)
        sf_buf_printf(out, "%%%sW%d_%d, ", i < weights ? "u" : "n", i % 2 + 1, i % weights / 2);
    sf_buf_printf(out, "%%loss : ");
    for (int i = 0; i < 2 * weights; i++) {
        put_type(m, i % weights, out);
        sf_buf_printf(out, ", ");
    }
    sf_buf_printf(out, "tensor<f32>\n}\n}\n");
}

static sf_graph *make_mlp(const mlp *m)
{
    sf_buf text = {0};
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    char type[48];
    snprintf(type, sizeof type, "tensor<%dx%dxf32>", m->rows, m->width);
    put_signature(m, &text);
    for (int l = 0; l < m->layers; l++)
        put_forward(m, l, &text);
    sf_buf_printf(&text, "%%zero = stablehlo.constant dense<0.0> : tensor<f32>\n");
    sf_buf_printf(&text, "%%d = stablehlo.subtract %%x%d, %%y : %s\n", m->layers, type);
    sf_buf_printf(&text, "%%sq = stablehlo.multiply %%d, %%d : %s\n", type);
    sf_buf_printf(&text,
                  "%%loss = stablehlo.reduce(%%sq init: %%zero) applies stablehlo.add across "
                  "dimensions = [0, 1] : (%s, tensor<f32>) -> tensor<f32>\n",
                  type);
    sf_buf_printf(&text, "%%g%d = stablehlo.add %%d, %%d : %s\n", m->layers, type);
    for (int l = m->layers - 1; l >= 0; l--)
        put_backward(m, l, &text);
    put_update(m, &text);
    if (sf_load_text(text.text, text.length, "mlp", NULL, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_buf_free(&text);
    sf_diag_free(diag);
    return graph;
}

/* NULL when nothing fits. */
static sf_plan *search_margin(const sf_graph *graph, const char *cluster_name, int64_t memory,
                              double margin, int level, int threads)
{
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster;
    sf_plan *plan = NULL;
    assert_int_equal(sf_cluster_open(cluster_name, diag, &cluster), SF_OK);
    sf_plan_spec spec = {.size = sizeof spec, .memory = memory};
    sf_plan_options options = {.size = sizeof options,
                               .cluster = cluster,
                               .margin = margin,
                               .level = level,
                               .threads = threads};
    sf_status status = sf_plan_search(graph, &spec, &options, diag, &plan);
    if (status != SF_OK && status != SF_EMISMATCH)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_cluster_free(cluster);
    sf_diag_free(diag);
    return plan;
}

static sf_plan *search_with(const sf_graph *graph, const char *cluster_name, int64_t memory,
                            int level, int threads)
{
    return search_margin(graph, cluster_name, memory, SF_PLAN_MARGIN, level, threads);
}

/* The share of argument `index` is this along every axis. */
static void check_share(const sf_plan *plan, uint32_t index, sf_share_kind kind, int dim)
{
    for (int a = 0; a < plan->mesh.naxes; a++) {
        sf_share share = plan->arguments[index].axes[a];
        assert_int_equal(share.kind, kind);
        if (kind == SF_SPLIT)
            assert_int_equal(share.dim, dim);
    }
}

/* A large batch on small weights: weights everywhere, the batch in parts. */
static void test_data_parallel(void **state)
{
    (void)state;
    mlp m = {262144, 512, 1024, 3};
    sf_graph *graph = make_mlp(&m);
    sf_plan *plan = search_with(graph, "1x8xV100", 0, 3, 0);
    assert_non_null(plan);
    assert_int_equal(plan->mesh.naxes, 1);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].role == SF_ROLE_BATCH)
            check_share(plan, i, SF_SPLIT, 0);
        else
            check_share(plan, i, SF_REPLICATED, 0);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

/* There the search knows better, by less than the margin: without one that is taken. It finds it on several meshes,
 * and gives the simplest. */
static void test_no_margin(void **state)
{
    (void)state;
    mlp m = {1024, 512, 8192, 3};
    sf_graph *graph = make_mlp(&m);
    sf_plan *plan = search_margin(graph, "1x8xV100", 0, -1, 3, 0);
    double recipe = HUGE_VAL, best = HUGE_VAL;
    for (int i = 0; i < plan->predicted->nalternatives; i++) {
        const sf_alternative *a = &plan->predicted->alternatives[i];
        if (a->fits && strcmp(a->name, "search") != 0)
            recipe = fmin(recipe, a->seconds);
        else if (a->fits)
            best = fmin(best, a->seconds);
    }
    assert_true(best < recipe && best > (1 - SF_PLAN_MARGIN) * recipe);
    assert_true(plan->predicted->seconds == best);
    assert_int_equal(plan->mesh.naxes, 1);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

/* Few rows on large weights: columns, then rows, and one reduction a block and direction; the first block
 * has no gradient to hand on. */
static void test_megatron(void **state)
{
    (void)state;
    mlp m = {8, 4096, 16384, 3};
    sf_graph *graph = make_mlp(&m);
    sf_plan *plan = search_with(graph, "1x8xV100", 0, 3, 0);
    assert_non_null(plan);
    for (uint32_t i = 0; i < 4u * (uint32_t)m.layers; i++)
        check_share(plan, i, SF_SPLIT, i % 2 == 0 ? 1 : 0);
    sf_local *local = test_local(graph, plan, 0);
    int reductions = 0;
    for (int i = 0; test_collective(local, i); i++)
        reductions += strcmp(test_collective(local, i)->def->name, "all_reduce") == 0;
    assert_int_equal(reductions, 2 * m.layers - 1);
    sf_local_free(local);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

static int count_split(const sf_graph *graph, const sf_plan *plan)
{
    int split = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].role == SF_ROLE_STATE)
            split += !sf_layout_is_replicated(&plan->arguments[i]);
    return split;
}

/* The tighter the memory, the slower the step, until nothing fits; but for the margin that a recipe has, and one percent. */
static void test_memory(void **state)
{
    (void)state;
    mlp m = {4096, 2048, 8192, 4};
    sf_graph *graph = make_mlp(&m);
    sf_plan *loose = search_with(graph, "1x4xV100", 0, 2, 0);
    assert_non_null(loose);
    double seconds = loose->predicted->seconds;
    int64_t need = loose->predicted->memory;
    int fitted = 0;
    sf_plan_free(loose);
    for (int percent = 98; percent >= 80; percent -= 6) {
        int64_t limit = need / 100 * percent;
        sf_plan *plan = search_with(graph, "1x4xV100", limit, 2, 0);
        if (!plan)
            break;
        assert_true(plan->predicted->memory <= limit);
        assert_true(plan->predicted->seconds >= seconds * (1 - SF_PLAN_MARGIN) * 0.99);
        fitted++;
        sf_plan_free(plan);
    }
    assert_true(fitted >= 1);
    assert_null(search_with(graph, "1x4xV100", need / 1000, 2, 0));
    sf_graph_free(graph);
}

/* ZeRO where it is needed: state of as many tensors is split as the memory asks for. */
static void test_some_state(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    sf_arena arena = {0};
    sf_cluster *cluster;
    sf_costs *costs;
    int size = 4, before = 0;
    sf_mesh mesh = {1, {{"data", 4}}};
    assert_int_equal(sf_cluster_open("1x4xV100", NULL, &cluster), SF_OK);
    assert_int_equal(sf_costs_new(cluster, 1, &size, 0, &arena, NULL, &costs), SF_OK);
    sf_ground ground = {.graph = graph,
                        .efforts = sf_efforts_new(graph, sf_engine_target(NULL), &arena),
                        .memory = INT64_MAX};
    sf_priced dp, all;
    assert_int_equal(sf_known_plan(&ground, sf_known_nth(0), &mesh, costs, NULL, &dp), SF_OK);
    ground.memory = 0;
    assert_int_equal(sf_known_plan(&ground, sf_known_nth(1), &mesh, costs, NULL, &all), SF_OK);
    assert_true(all.price.memory < dp.price.memory);
    int most = count_split(graph, all.plan);
    for (int percent = 90; percent >= 0; percent -= 30) {
        sf_priced some;
        ground.memory = all.price.memory + (dp.price.memory - all.price.memory) / 100 * percent;
        assert_int_equal(sf_known_plan(&ground, sf_known_nth(1), &mesh, costs, NULL, &some), SF_OK);
        assert_true(some.fits);
        int split = count_split(graph, some.plan);
        assert_true(split > 0 && split >= before && split <= most);
        assert_true(percent < 90 || split < most);
        before = split;
        sf_plan_free(some.plan);
    }
    sf_plan_free(dp.plan);
    sf_plan_free(all.plan);
    sf_cluster_free(cluster);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

/* More devices than a step has use for do no harm. */
static void test_more_devices(void **state)
{
    (void)state;
    static const char *const clusters[] = {"1x8xV100", "2x8xV100", "16x8xV100", "128x8xV100"};
    mlp m = {64, 1024, 4096, 3};
    sf_graph *graph = make_mlp(&m);
    double before = HUGE_VAL;
    for (size_t i = 0; i < sizeof clusters / sizeof *clusters; i++) {
        sf_plan *plan = search_with(graph, clusters[i], 0, 2, 0);
        assert_non_null(plan);
        assert_true(plan->predicted->seconds <= before * 1.001);
        before = plan->predicted->seconds;
        sf_plan_free(plan);
    }
    sf_graph_free(graph);
}

/* The faster one, and one that is slower by no more than the margin where it takes three quarters of the memory or less. */
static bool is_preferred(const sf_prediction *taken, const sf_alternative *other)
{
    if (taken->seconds <= other->seconds)
        return true;
    return taken->seconds <= (1 + SF_PLAN_MARGIN) * other->seconds &&
           (double)taken->memory <= 0.75 * (double)other->memory;
}

/* Of all candidates considered, no recipe that fits is better than the answer. In the short version, for two of the steps. */
static void test_best_of_all(void **state)
{
    (void)state;
    static const char *const clusters[] = {"1x2xV100", "2x2xV100", "1x8xH100"};
    for (int i = 0; test_steps[i]; i++) {
        if (test_short() && i % 6 != 1)
            continue;
        sf_graph *graph = test_step(test_steps[i]);
        const char *cluster = clusters[i / 3 % 3];
        sf_plan *plan = search_with(graph, cluster, 0, 2, 1 + i % 3);
        assert_non_null(plan);
        const sf_prediction *predicted = plan->predicted;
        assert_true(predicted->bound <= predicted->seconds);
        for (int a = 0; a < predicted->nalternatives; a++) {
            const sf_alternative *other = &predicted->alternatives[a];
            if (other->fits && strcmp(other->name, "search") != 0 &&
                !is_preferred(predicted, other))
                fail_msg("%s on %s: %g s and %ld bytes are taken, %s on %s takes %g s and %ld",
                         test_steps[i], cluster, predicted->seconds, (long)predicted->memory,
                         other->name, other->mesh, other->seconds, (long)other->memory);
        }
        sf_plan_free(plan);
        sf_graph_free(graph);
    }
}

static void test_threads(void **state)
{
    (void)state;
    mlp m = {64, 256, 512, 2};
    sf_graph *graph = make_mlp(&m);
    sf_buf texts[2] = {0};
    for (int i = 0; i < 2; i++) {
        sf_plan *plan = search_with(graph, "2x4xV100", 0, 3, 1 + 3 * i);
        assert_non_null(plan);
        sf_plan_write(plan, graph, NULL, &texts[i]);
        sf_plan_free(plan);
    }
    assert_string_equal(texts[0].text, texts[1].text);
    for (int i = 0; i < 2; i++)
        sf_buf_free(&texts[i]);
    sf_graph_free(graph);
}

typedef struct searching {
    const sf_graph *graph;
    sf_search_options options;
} searching;

static sf_status search_plans(void *context)
{
    searching *job = context;
    sf_found_plans found;
    job->options.target = sf_engine_target(NULL);
    sf_status status = sf_search_plans(job->graph, &job->options, NULL, &found);
    sf_found_plans_free(&found);
    return status;
}

/* Memory that runs out anywhere in the search is a status, and everything is given back: what threads have made, too. */
static void lose_memory(int threads)
{
    mlp m = {16, 32, 64, 1};
    sf_graph *graph = make_mlp(&m);
    sf_cluster *cluster;
    sf_status status = SF_ENOMEM;
    int failed = 0;
    assert_int_equal(sf_cluster_open("2x2xV100", NULL, &cluster), SF_OK);
    searching job = {graph, {.cluster = cluster, .memory = INT64_MAX, .level = 3}};
    job.options.threads = sf_threads_new(threads);
    for (long passed = 0; status != SF_OK; passed += passed / 8 + 1) {
        size_t before = sf_mem_live();
        sf_mem_fail_after(passed);
        status = sf_guarded(search_plans, &job, NULL);
        sf_mem_fail_after(-1);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        assert_int_equal(sf_mem_live(), before);
        failed += status != SF_OK;
    }
    assert_true(failed > 20);
    sf_threads_free(job.options.threads);
    sf_cluster_free(cluster);
    sf_graph_free(graph);
}

static void test_no_memory(void **state)
{
    (void)state;
    lose_memory(1);
    lose_memory(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_parallel), cmocka_unit_test(test_no_margin),
        cmocka_unit_test(test_megatron),      cmocka_unit_test(test_memory),
        cmocka_unit_test(test_some_state),    cmocka_unit_test(test_best_of_all),
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_more_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
