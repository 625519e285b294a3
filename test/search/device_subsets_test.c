/* Devices of different kinds: those that would slow the rest are left out, and stages get what suits them. */
#include "search/device_subsets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/part.h"
#include "plan/json/prediction_json.h"
#include "run/runner.h"
#include "search/price/price.h"
#include "sheaf/sheaf.h"
#include "support/chain.h"
#include "support/plans.h"
#include "support/sanitized.h"

static sf_cluster *open_cluster(const char *name)
{
    sf_cluster *cluster;
    assert_int_equal(sf_cluster_open(name, NULL, &cluster), SF_OK);
    return cluster;
}

static sf_plan *find_plan(const char *what, const sf_graph *graph, const char *mesh,
                          const sf_plan_options *options)
{
    sf_diag *diag = sf_diag_new();
    sf_plan_spec spec = {.size = sizeof spec, .mesh = mesh};
    sf_plan *plan;
    if (sf_plan_search(graph, &spec, options, diag, &plan) != SF_OK)
        fail_msg("%s: %s", what, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return plan;
}

static double seconds_on(const char *what, const sf_graph *graph, const char *name, bool recipes)
{
    sf_cluster *cluster = open_cluster(name);
    sf_plan_options options = {
        .size = sizeof options, .cluster = cluster, .level = 2, .recipes = recipes};
    sf_plan *plan = find_plan(what, graph, NULL, &options);
    double seconds = plan->predicted->seconds;
    sf_plan_free(plan);
    sf_cluster_free(cluster);
    return seconds;
}

/* What the plan says it takes is what it takes on the devices that it names. */
static void check_prediction(const char *what, const sf_graph *graph, const sf_plan *plan,
                             const sf_cluster *cluster)
{
    sf_arena arena = {0};
    const sf_cluster *on;
    sf_costs *costs;
    sf_price price;
    int unused = 0;
    assert_int_equal(sf_plan_cluster(plan, cluster, &arena, NULL, &on), SF_OK);
    assert_int_equal(on->ndevices, sf_plan_ranks(plan));
    assert_int_equal(sf_mesh_costs(on, &plan->mesh, &arena, NULL, &costs), SF_OK);
    assert_int_equal(
        sf_price_plan(graph, plan, sf_cluster_target(on), costs, NULL, NULL, NULL, &price), SF_OK);
    if (price.seconds != plan->predicted->seconds)
        fail_msg("%s: %g s are predicted, it takes %g", what, plan->predicted->seconds,
                 price.seconds);
    for (int i = 0; i < plan->predicted->nunused; i++) {
        sf_cluster *left;
        assert_int_equal(sf_cluster_part_of(cluster, sf_str_of(plan->predicted->unused[i].nodes),
                                            &arena, NULL, &left),
                         SF_OK);
        unused += left->ndevices;
        assert_true(*plan->predicted->unused[i].what && *plan->predicted->unused[i].why);
    }
    assert_int_equal(unused + on->ndevices, cluster->ndevices);
    sf_arena_free(&arena);
}

static const struct {
    const char *fast, *both;
} mixes[] = {{"4xA100", "4xA100+4xV100"},
             {"4xA100", "4xV100+4xA100"},
             {"2x2xH100", "2x2xH100+4xA100"},
             {"4xV100", "4xV100+2xV100-16GB-PCIe"}};

/* More devices are never slower, whichever stand first. Of recipes alone, as that is soon done; of one step of everything. In the short version
 * each step is planned on one of the mixes. */
static void test_never_slower(void **state)
{
    (void)state;
    static const char *const steps[] = {"gpt-micro",  "moe-micro",     "t5-micro", "llama-micro",
                                        "swin-micro", "wresnet-micro", "mlp-micro"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        sf_graph *graph = test_step(steps[i]);
        for (size_t m = 0; m < sizeof mixes / sizeof *mixes; m++) {
            if (test_short() && (i % 4 != m || i % 2))
                continue;
            bool recipes = strcmp(steps[i], "mlp-micro") != 0;
            double fast = seconds_on(steps[i], graph, mixes[m].fast, recipes);
            sf_cluster *cluster = open_cluster(mixes[m].both);
            sf_plan_options options = {
                .size = sizeof options, .cluster = cluster, .level = 2, .recipes = recipes};
            sf_plan *plan = find_plan(steps[i], graph, NULL, &options);
            if (plan->predicted->seconds > fast)
                fail_msg("%s: %g s on %s, and %g on %s", steps[i], fast, mixes[m].fast,
                         plan->predicted->seconds, mixes[m].both);
            check_prediction(steps[i], graph, plan, cluster);
            sf_plan_free(plan);
            sf_cluster_free(cluster);
        }
        sf_graph_free(graph);
    }
}

/* Everything takes so many times as long on devices of the second kind, and links are fast. */
static sf_cluster *open_uneven(const char *name, double slower)
{
    sf_cluster *cluster = open_cluster(name);
    for (int k = 1; k < cluster->nkinds; k++) {
        cluster->kinds[k] = cluster->kinds[0];
        cluster->kinds[k].flops[SF_MATH_F32] /= slower;
        cluster->kinds[k].flops[SF_MATH_TF32] /= slower;
        cluster->kinds[k].bandwidth /= slower;
    }
    for (int r = 0; r < cluster->nruns; r++)
        cluster->nodes[r].network = (sf_link){.latency = 1e-6, .bandwidth = 1e12};
    return cluster;
}

static sf_graph *large_chain(void)
{
    return test_chain(12, 16384, 2048, false);
}

/* Where a pipeline makes use of both kinds, the slower one gets less to do: it computes about as long as the other. */
static void test_stages_suit_devices(void **state)
{
    (void)state;
    sf_graph *graph = large_chain();
    double fast = seconds_on("chain", graph, "1xA100", false);
    static const double slower[] = {2, 3, 4};
    for (size_t i = 0; i < sizeof slower / sizeof *slower; i++) {
        sf_cluster *cluster = open_uneven("1xA100+1xV100", slower[i]);
        sf_plan *plan =
            find_plan("chain", graph, NULL,
                      &(sf_plan_options){.size = sizeof(sf_plan_options), .cluster = cluster});
        check_prediction("chain", graph, plan, cluster);
        sf_arena arena = {0};
        const sf_cluster *on;
        sf_costs *costs;
        sf_group_runs runs;
        assert_non_null(plan->pipeline);
        assert_int_equal(plan->predicted->nunused, 0);
        double least = fast * slower[i] / (1 + slower[i]); /* without a bubble */
        if (plan->predicted->seconds > 1.2 * least)
            fail_msg("%g times slower: %g s, and %g on the fast one alone", slower[i],
                     plan->predicted->seconds, fast);
        assert_int_equal(sf_plan_cluster(plan, cluster, &arena, NULL, &on), SF_OK);
        assert_int_equal(sf_mesh_costs(on, &plan->mesh, &arena, NULL, &costs), SF_OK);
        assert_int_equal(sf_group_runs_new(graph, plan, sf_cluster_target(on), costs, NULL, &runs),
                         SF_OK);
        double a = runs.at[0].sim.compute, b = runs.at[1].sim.compute;
        if (a > 1.6 * b || b > 1.6 * a)
            fail_msg("%g times slower: groups compute for %g and %g s", slower[i], a, b);
        sf_group_runs_free(&runs);
        sf_arena_free(&arena);
        sf_plan_free(plan);
        sf_cluster_free(cluster);
    }
    sf_graph_free(graph);
}

/* The plan's file keeps where ranks are, and what is idle. */
static void test_file(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    sf_cluster *cluster = open_cluster("4xV100+4xA100");
    sf_plan_options options = {.size = sizeof options, .cluster = cluster, .recipes = true};
    sf_plan *plan = find_plan("gpt", graph, NULL, &options);
    sf_buf first = {0}, second = {0};
    sf_plan *recomputed;
    assert_string_equal(plan->predicted->nodes, "1");
    assert_int_equal(plan->predicted->nunused, 1);
    assert_string_equal(plan->predicted->unused[0].what, "4 x V100-32GB-SXM2");
    sf_plan_write(plan, graph, NULL, &first);
    assert_int_equal(sf_plan_read(sf_str_of(first.text), "plan", graph, NULL, &recomputed), SF_OK);
    sf_plan_write(recomputed, graph, NULL, &second);
    assert_string_equal(first.text, second.text);
    check_prediction("gpt", graph, recomputed, cluster);
    sf_buf_free(&first);
    sf_buf_free(&second);
    sf_plan_free(recomputed);
    sf_plan_free(plan);
    sf_cluster_free(cluster);
    sf_graph_free(graph);
}

/* A mesh of the user is laid on whatever has as many devices. */
static void test_mesh(void **state)
{
    (void)state;
    static const struct {
        const char *mesh, *nodes;
    } given[] = {{"data=4", "0"}, {"data=2", "1"}, {"data=6", ""}};
    sf_graph *graph = test_chain(2, 1536, 384, false);
    sf_cluster *cluster = open_cluster("4xA100+2xV100");
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        sf_plan_options options = {.size = sizeof options, .cluster = cluster};
        sf_plan *plan = find_plan(given[i].mesh, graph, given[i].mesh, &options);
        assert_string_equal(plan->predicted->nodes, given[i].nodes);
        check_prediction(given[i].mesh, graph, plan, cluster);
        sf_plan_free(plan);
    }
    sf_diag *diag = sf_diag_new();
    sf_plan_spec three = {.size = sizeof three, .mesh = "data=3"};
    sf_plan_options options = {.size = sizeof options, .cluster = cluster};
    sf_plan *plan;
    assert_int_equal(sf_plan_search(graph, &three, &options, diag, &plan), SF_EUSAGE);
    assert_non_null(strstr(sf_diag_text(diag, 0), "3 ranks"));
    sf_diag_free(diag);
    sf_cluster_free(cluster);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_slower),
                                       cmocka_unit_test(test_stages_suit_devices),
                                       cmocka_unit_test(test_file), cmocka_unit_test(test_mesh)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
