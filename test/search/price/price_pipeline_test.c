/* Groups that are lowered within limits: what keeps to them is priced as without, and what does not ends with the first group that
 * is beyond, whose time alone is no more than that of all. */
#include "search/price/price_pipeline.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/runner.h"
#include "search/price/move_cost.h"
#include "search/price/price.h"
#include "sheaf/sheaf.h"
#include "support/chain.h"

static void test_limits(void **state)
{
    (void)state;
    sf_graph *graph = test_chain(8, 64, 256, false);
    const sf_target *target = sf_engine_target(NULL);
    sf_arena arena = {0};
    sf_cluster *cluster;
    sf_costs *costs;
    sf_plan *plan;
    sf_price all, within;
    sf_threads *threads = sf_threads_new(3);
    assert_int_equal(sf_cluster_open("4xV100", NULL, &cluster), SF_OK);
    sf_plan_spec spec = {
        .size = sizeof spec, .stages = "4", .schedule = "1f1b", .micro_batches = 8};
    sf_plan_options options = {.size = sizeof options, .cluster = cluster};
    assert_int_equal(sf_plan_search(graph, &spec, &options, NULL, &plan), SF_OK);
    assert_int_equal(sf_mesh_costs(cluster, &plan->mesh, &arena, NULL, &costs), SF_OK);
    assert_int_equal(sf_price_plan(graph, plan, target, costs, NULL, NULL, NULL, &all), SF_OK);
    assert_int_equal(all.nprograms, 4);

    const struct {
        sf_group_limits limits;
        int most; /* programs */
    } cases[] = {{{.seconds = HUGE_VAL}, 4},
                 {{.seconds = HUGE_VAL, .threads = threads}, 4},
                 {{.memory = all.memory, .seconds = 1.001 * all.seconds, .threads = threads}, 4},
                 {{.memory = all.memory / 2, .seconds = HUGE_VAL}, 1},
                 {{.memory = all.memory / 2, .seconds = HUGE_VAL, .threads = threads}, 1},
                 {{.seconds = all.seconds / 100}, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sf_group_limits *limits = &cases[i].limits;
        sf_group_runs runs;
        assert_int_equal(sf_group_runs_within(graph, plan, target, costs, limits, NULL, &runs),
                         SF_OK);
        sf_price_within(&runs, costs, &within);
        sf_group_runs_free(&runs);
        assert_in_range(within.nprograms, 1, cases[i].most);
        bool is_beyond = within.nprograms < 4;
        assert_int_equal(is_beyond, cases[i].most < 4);
        assert_true(within.memory <= all.memory);
        assert_true(within.seconds <= all.seconds);
        if (!is_beyond) {
            assert_true(within.seconds == all.seconds);
            assert_true(within.memory == all.memory);
        } else {
            assert_true((limits->memory > 0 && within.memory > limits->memory) ||
                        within.seconds >= limits->seconds);
        }
    }
    sf_threads_free(threads);
    sf_plan_free(plan);
    sf_cluster_free(cluster);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

static int64_t split_bytes(const char *machine, int pipe, int data)
{
    sf_arena arena = {0};
    sf_cluster *cluster;
    sf_costs *costs;
    sf_mesh mesh = {2, {{"pipe", pipe}, {"data", data}}};
    assert_int_equal(sf_cluster_open(machine, NULL, &cluster), SF_OK);
    assert_int_equal(sf_mesh_costs(cluster, &mesh, &arena, NULL, &costs), SF_OK);
    int64_t bytes = sf_split_bytes(costs, &mesh, 0);
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
    return bytes;
}

/* Messages are split where they leave a host and are gathered in it, if they are long enough. */
static void test_split_messages(void **state)
{
    (void)state;
    assert_in_range(split_bytes("4x8xH100@100G", 4, 8), 1024, 8 << 20);
    assert_true(split_bytes("4x8xH100", 4, 8) >= split_bytes("4x8xH100@100G", 4, 8));
    assert_true(split_bytes("1x8xH100", 2, 4) == INT64_MAX);
    assert_true(split_bytes("4x1xH100@100G", 2, 2) == INT64_MAX);
    assert_true(split_bytes("4x1xH100@100G", 4, 1) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_split_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
