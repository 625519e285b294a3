/* Initialisation: distributions, rules, fans, names, and that every number is where it belongs. */
#include "train/init.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ir/name.h"
#include "train/init_fan.h"
#include "train/random_draw.h"

static sf_graph *graph;
static sf_arena arena;
static sf_rank_shards whole;
static const char **names;
static sf_tensor *arguments;

static int load(void **state)
{
    (void)state;
    if (sf_load("examples/gpt-micro.stablehlo.mlir", NULL, NULL, &graph) != SF_OK)
        return -1;
    names = sf_clean_names(graph, &arena);
    whole = sf_rank_shards_whole(graph, &arena);
    arguments = SF_ARRAY(&arena, graph->top->narguments, sf_tensor);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        arguments[i].type = type;
        arguments[i].data = sf_arena_alloc(&arena, (size_t)sf_type_bytes(type));
    }
    return 0;
}

static int unload(void **state)
{
    (void)state;
    sf_graph_free(graph);
    sf_arena_free(&arena);
    return 0;
}

static uint32_t find(const char *name)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    fail_msg("no argument %s", name);
    return 0;
}

/* Drawn together or one by one, numbers are the same, wherever they begin. */
static void test_normals(void **state)
{
    enum { COUNT = 1000 };
    static const double limits[] = {0, 2};
    static const uint64_t firsts[] = {0, 17, 0xffffffc0, UINT64_C(0x7fffffffffffff00)};
    (void)state;
    for (int k = 0; k < 8; k++) {
        sf_draw draw = sf_draw_of(5, SF_DRAW_INIT, (uint64_t)k);
        double many[COUNT], limit = limits[k % 2];
        uint64_t first = firsts[k / 2];
        sf_draw_normals(&draw, first, COUNT, limit, many);
        for (uint64_t i = 0; i < COUNT; i++) {
            double outside = limit > 0 ? erfc(limit / sqrt(2)) / 2 : 0;
            double p = outside + sf_draw_uniform(&draw, first + i) * (1 - 2 * outside);
            assert_true(many[i] == sf_normal_quantile(p));
        }
    }
}

static void test_clean_names(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"params['params']['layer_0']['attn']['q']['kernel']", "params/layer_0/attn/q/kernel"},
        {"opt[0].mu['params']['wte']['embedding']", "opt/0/mu/params/wte/embedding"},
        {"opt[0].count", "opt/0/count"},
        {"batch__ids__.1", "batch/ids"},
        {"params__params____layer_0____attn____k____bias__.1", "params/layer_0/attn/k/bias"},
        {"layers.0.weight", "layers/0/weight"},
        {"x", "x"},
        {"x/x", "x"},
        {"xx/x", "xx/x"},
        {"a.a.a", "a/a"},
        {"['']", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(sf_clean_name(sf_str_of(cases[i][0]), &arena), cases[i][1]);
    assert_true(sf_name_ends("a/b/c", "b/c"));
    assert_true(sf_name_ends("a/b/c", "a/b/c"));
    assert_false(sf_name_ends("a/b/c", "/c"));
    assert_false(sf_name_ends("a/bb/c", "b/c"));
    assert_false(sf_name_ends("a", ""));
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
}

/* Against the distribution function of the C library. */
static void test_quantile(void **state)
{
    (void)state;
    for (double p = 1e-17; p < 1; p += p < 0.01 ? p : 0.003) {
        double x = sf_normal_quantile(p);
        assert_true(fabs(erfc(-x / sqrt(2)) / 2 - p) < 1e-14 * p + 4e-16);
    }
    assert_true(fabs(sf_normal_quantile(0.975) - 1.959963984540054) < 1e-14);
    assert_true(fabs(sf_normal_quantile(1e-6) + 4.753424308822899) < 1e-12);
}

static void test_permutation(void **state)
{
    (void)state;
    for (uint64_t count = 1; count < 300; count += count < 20 ? 1 : 37) {
        sf_draw draw = sf_draw_of(5, SF_DRAW_ORDER, count), other = sf_draw_of(5, SF_DRAW_ORDER, 0);
        bool seen[300] = {false};
        uint64_t moved = 0;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t to = sf_draw_permuted(&draw, count, i);
            assert_true(to < count && !seen[to]);
            seen[to] = true;
            moved += to != sf_draw_permuted(&other, count, i);
        }
        assert_true(count < 20 || moved > count / 2);
    }
    sf_draw draw = sf_draw_of(1, SF_DRAW_ORDER, 0);
    assert_true(sf_draw_permuted(&draw, UINT64_MAX, UINT64_MAX - 1) < UINT64_MAX);
}

static void fill_by(sf_threads *threads, uint32_t index, sf_init_rule rule, uint64_t seed,
                    const sf_type *type, float *out)
{
    sf_tensor tensor = {.type = type, .data = out};
    sf_runs all = sf_runs_of(&(sf_layout){0}, &(sf_mesh){0}, 0, type);
    sf_init_fill(graph, index, names[index], rule, seed, all, threads, &tensor);
}

static void fill(uint32_t index, sf_init_rule rule, uint64_t seed, const sf_type *type, float *out)
{
    fill_by(NULL, index, rule, seed, type, out);
}

static void moments(const float *values, int count, double *mean, double *deviation, double *most)
{
    double sum = 0, squares = 0;
    *most = 0;
    for (int i = 0; i < count; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
        *most = fmax(*most, fabs((double)values[i]));
    }
    *mean = sum / count;
    *deviation = sqrt(squares / count - *mean * *mean);
}

static void test_distributions(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    static float values[COUNT];
    const int64_t dims[] = {COUNT};
    const sf_type *type = sf_type_get(graph->pool, SF_F32, 1, dims);
    uint32_t kernel = find("params/layer_0/mlp/down/kernel"); /* 64 x 16 */
    const struct {
        sf_init_rule rule;
        double deviation, most;
    } cases[] = {
        {{NULL, SF_INIT_NORMAL, 0.02}, 0.02, 0.1},
        {{NULL, SF_INIT_TRUNCATED, 0.02}, 0.02, 0.02 * 2 / 0.8796},
        {{NULL, SF_INIT_UNIFORM, 3}, sqrt(3), 3},
        {{NULL, SF_INIT_FAN_IN, 1}, 0.125, 0.25 / 0.8796},
        {{NULL, SF_INIT_HE, 1}, sqrt(2.0 / 64), sqrt(2.0 / 64) * 2 / 0.8796},
        {{NULL, SF_INIT_XAVIER, 1}, sqrt(2.0 / 80), sqrt(6.0 / 80)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double mean, deviation, most;
        fill(kernel, cases[i].rule, 1, type, values);
        moments(values, COUNT, &mean, &deviation, &most);
        assert_true(fabs(mean) < 0.02 * cases[i].deviation);
        assert_true(fabs(deviation / cases[i].deviation - 1) < 0.01);
        assert_true(most <= cases[i].most * 1.0001 && most > 0.8 * cases[i].most);
    }
}

/* Of complex numbers the absolute value has the spread, and the parts have equal shares of it. */
static void test_complex(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    static float values[2 * COUNT], again[2 * COUNT];
    const int64_t dims[] = {COUNT};
    const sf_type *type = sf_type_get(graph->pool, SF_C64, 1, dims);
    uint32_t kernel = find("params/layer_0/mlp/down/kernel");
    double mean, deviation, most;
    fill(kernel, (sf_init_rule){NULL, SF_INIT_NORMAL, 0.02}, 1, type, values);
    moments(values, 2 * COUNT, &mean, &deviation, &most);
    assert_true(fabs(deviation / (0.02 * sqrt(0.5)) - 1) < 0.01);
    double squares[2] = {0}, product = 0;
    for (int i = 0; i < COUNT; i++) {
        for (int p = 0; p < 2; p++)
            squares[p] += (double)values[2 * i + p] * (double)values[2 * i + p];
        product += (double)values[2 * i] * (double)values[2 * i + 1];
    }
    assert_true(fabs(squares[0] / squares[1] - 1) < 0.03);
    assert_true(fabs(product) < 0.02 * squares[0]);
    fill(kernel, (sf_init_rule){NULL, SF_INIT_CONSTANT, 1.5}, 1, type, again);
    assert_true(again[0] == 1.5f && again[1] == 0 && again[2 * COUNT - 1] == 0);
}

/* The numbers depend on seed, name and index, and on nothing else. */
static void test_counter_based(void **state)
{
    (void)state;
    float a[64], b[64], c[16];
    const int64_t dims[] = {64}, few[] = {16};
    const sf_type *type = sf_type_get(graph->pool, SF_F32, 1, dims);
    const sf_type *less = sf_type_get(graph->pool, SF_F32, 1, few);
    sf_init_rule rule = {NULL, SF_INIT_NORMAL, 1};
    uint32_t q = find("params/layer_0/attn/q/kernel"), k = find("params/layer_0/attn/k/kernel");
    fill(q, rule, 1, type, a);
    fill(q, rule, 1, less, c);
    assert_memory_equal(a, c, sizeof c);
    fill(k, rule, 1, type, b);
    assert_memory_not_equal(a, b, sizeof a);
    fill(q, rule, 2, type, b);
    assert_memory_not_equal(a, b, sizeof a);
}

static void test_fans(void **state)
{
    (void)state;
    sf_fan fan = sf_fan_of(graph, find("params/layer_0/mlp/up/kernel"));
    assert_true(fan.in == 16 && fan.out == 64);
    fan = sf_fan_of(graph, find("params/layer_0/mlp/down/kernel"));
    assert_true(fan.in == 64 && fan.out == 16);
    fan = sf_fan_of(graph, find("opt/0/count"));
    assert_true(fan.in == 1 && fan.out == 1);
}

static sf_init_rule choose(const char *rules, const char *name)
{
    sf_init_rules parsed;
    assert_int_equal(sf_init_parse(rules, &arena, NULL, &parsed), SF_OK);
    return sf_init_choose(graph, find(name), name, &parsed);
}

static void test_rules(void **state)
{
    (void)state;
    static const char wte[] = "params/wte/embedding", bias[] = "params/layer_0/attn/k/bias",
                      kernel[] = "params/layer_0/attn/k/kernel", scale[] = "params/norm_f/scale";
    assert_int_equal(choose(NULL, bias).kind, SF_INIT_CONSTANT);
    assert_true(choose(NULL, bias).scale == 0);
    assert_true(choose(NULL, scale).kind == SF_INIT_CONSTANT && choose(NULL, scale).scale == 1);
    assert_int_equal(choose(NULL, wte).kind, SF_INIT_NORMAL);
    assert_int_equal(choose(NULL, kernel).kind, SF_INIT_FAN_IN);
    /* Without a pattern: what is random anyway. */
    assert_int_equal(choose("normal:0.5", kernel).kind, SF_INIT_NORMAL);
    assert_true(choose("normal:0.5", wte).scale == 0.5);
    assert_int_equal(choose("normal:0.5", bias).kind, SF_INIT_CONSTANT);
    /* The first pattern that matches, wherever the rule without one stands. */
    const char *rules = "xavier:2,wte*=normal:1e-2,*bias=constant:-3,attn/?/bias=ones,*=default";
    assert_true(choose(rules, wte).scale == 0.01);
    assert_true(choose(rules, bias).scale == -3);
    assert_int_equal(choose(rules, kernel).kind, SF_INIT_FAN_IN);
    assert_int_equal(choose("xavier:2", kernel).kind, SF_INIT_XAVIER);
    assert_true(choose("attn/?/bias=ones", bias).scale == 1);
    assert_true(choose("*=zeros", scale).scale == 0);
}

static void test_bad_rules(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "normal",
        "normal:",
        "normal:x",
        "normal:1e",
        "normal:.",
        "normal:1.2.3",
        "zeros:1",
        "",
        ",",
        "normal:1,",
        "nothing",
        "a=",
        "a=b=normal",
        "normal:1e999",
        "normal:nan",
        "normal:inf",
        "normal:0x1p1",
        "=normal:1e+",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sf_init_rules rules;
        if (strcmp(bad[i], "normal:1,") == 0) /* a comma at the end is let pass */
            continue;
        assert_int_equal(sf_init_parse(bad[i], &arena, NULL, &rules), SF_EUSAGE);
    }
    assert_true(sf_init_is_rules("zeros"));
    assert_true(sf_init_is_rules("wte*=normal:0.1,zeros"));
    assert_false(sf_init_is_rules("runs/1"));
    assert_false(sf_init_is_rules("model.safetensors"));
    sf_init_rules rules;
    assert_int_equal(sf_init_parse("nobody=zeros", &arena, NULL, &rules), SF_OK);
    assert_int_equal(
        sf_init_random(&whole, names, &rules, 0, NULL, &(sf_holder){.tensors = arguments}, NULL),
        SF_EUSAGE);
}

static void test_random(void **state)
{
    (void)state;
    const sf_init_rules none = {0};
    assert_int_equal(
        sf_init_random(&whole, names, &none, 3, NULL, &(sf_holder){.tensors = arguments}, NULL),
        SF_OK);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        double sum = 0;
        for (int64_t k = 0; k < arguments[i].type->count; k++)
            sum += fabs(sf_get_f64(&arguments[i], k));
        bool bias = strstr(names[i], "bias") != NULL;
        if (graph->arguments[i].role == SF_ROLE_PARAM)
            assert_true(bias ? sum == 0 : sum > 0);
        else
            assert_true(sum == 0);
    }
}

/* jax.random.fold_in(jax.random.PRNGKey(7), 3), from JAX. */
static void test_jax_keys(void **state)
{
    (void)state;
    uint32_t key[2], folded[2];
    sf_jax_key(7, key);
    assert_true(key[0] == 0 && key[1] == 7);
    sf_jax_fold_in(key, 3, folded);
    assert_true(folded[0] == 0x107b9334 && folded[1] == 0x61dcd604);
}

/* What a rank draws is what the whole has there, to the bit. */
static void test_pieces(void **state)
{
    (void)state;
    const sf_init_rules none = {0};
    sf_mesh mesh = {.naxes = 2, .axes = {{"a", 2}, {"b", 2}}};
    uint32_t count = graph->top->narguments;
    sf_layout *layouts = SF_ARRAY(&arena, count, sf_layout);
    sf_tensor *shards = SF_ARRAY(&arena, count, sf_tensor);
    int split = 0;
    for (uint32_t i = 0; i < count; i++) {
        const sf_type *type = arguments[i].type;
        sf_layout_parse(sf_str_of(type->rank > 1 ? "[S(1), S(0,4)]" : "[S(0), R]"), &mesh,
                        type->rank, type->dims, NULL, NULL, &layouts[i]);
        shards[i] = (sf_tensor){type, sf_arena_alloc(&arena, (size_t)sf_type_bytes(type)), NULL};
    }
    assert_int_equal(
        sf_init_random(&whole, names, &none, 5, NULL, &(sf_holder){.tensors = arguments}, NULL),
        SF_OK);
    for (int rank = 0; rank < 4; rank++) {
        sf_rank_shards own = {graph, mesh, rank, layouts};
        assert_int_equal(
            sf_init_random(&own, names, &none, 5, NULL, &(sf_holder){.tensors = shards}, NULL),
            SF_OK);
        for (uint32_t i = 0; i < count; i++) {
            if (!sf_argument_is_kept(&graph->arguments[i]))
                continue;
            size_t width = sf_dtype_get(shards[i].type->dtype)->bytes;
            sf_runs runs = sf_rank_shards_runs(&own, i);
            split += sf_rank_shards_is_split(&own, i);
            while (sf_runs_next(&runs))
                assert_memory_equal((char *)shards[i].data + (size_t)runs.local * width,
                                    (char *)arguments[i].data + (size_t)runs.global * width,
                                    (size_t)runs.count * width);
        }
    }
    assert_true(split > 100);
}

/* Threads draw what one draws alone. */
static void test_threads(void **state)
{
    (void)state;
    const sf_type *type = sf_type_get(graph->pool, SF_F32, 2, (int64_t[]){101, 457});
    size_t bytes = (size_t)sf_type_bytes(type);
    float *alone = sf_arena_alloc(&arena, bytes), *together = sf_arena_alloc(&arena, bytes);
    sf_init_rule rule = {.kind = SF_INIT_NORMAL, .scale = 1};
    sf_threads *threads = sf_threads_new(3);
    fill(0, rule, 7, type, alone);
    fill_by(threads, 0, rule, 7, type, together);
    sf_threads_free(threads);
    assert_memory_equal(alone, together, bytes);
}

/* From a file: by number, converted, and by the endings of names. */
static void test_file(void **state)
{
    (void)state;
    assert_int_equal(sf_init_file(&whole, names, "examples/gpt-micro.io.safetensors", 0, NULL,
                                  &(sf_holder){.tensors = arguments}, NULL),
                     SF_OK);
    uint32_t kernel = find("params/layer_0/attn/q/kernel");
    assert_true(sf_get_f64(&arguments[kernel], 0) != 0);
    assert_int_equal(sf_init_file(&whole, names, "test/data/micro/mlp-micro.io.safetensors", 0,
                                  NULL, &(sf_holder){.tensors = arguments}, NULL),
                     SF_EINPUT);
    assert_int_equal(sf_init_file(&whole, names, "examples/gpt-micro.json", 0, NULL,
                                  &(sf_holder){.tensors = arguments}, NULL),
                     SF_EINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean_names), cmocka_unit_test(test_quantile),
        cmocka_unit_test(test_permutation), cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_complex),     cmocka_unit_test(test_counter_based),
        cmocka_unit_test(test_fans),        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_bad_rules),   cmocka_unit_test(test_random),
        cmocka_unit_test(test_jax_keys),    cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_threads),     cmocka_unit_test(test_normals),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
