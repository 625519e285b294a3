/* Short steps stand for the whole one: the weighted sum of what a plan specification costs on them is what it costs on the step.
 * And the search over specifications: its plan fits, no recipe that fits is faster, and what a person fixes holds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "run/runner.h"
#include "search/price/price.h"
#include "search/specs/folded.h"
#include "search/specs/plan_queue.h"
#include "search/specs/spec_plan.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"
#include "support/sanitized.h"

#define STEP "examples/gpt2-124m.stablehlo.mlir.gz"

typedef struct ground {
    sf_graph *graph;
    sf_cluster *cluster;
} ground;

static ground open_ground(const char *cluster)
{
    ground g;
    if (sf_load(STEP, NULL, NULL, &g.graph) != SF_OK)
        skip();
    assert_int_equal(sf_cluster_open(cluster, NULL, &g.cluster), SF_OK);
    return g;
}

static void close_ground(ground *g)
{
    sf_cluster_free(g->cluster);
    sf_graph_free(g->graph);
}

static bool price_spec(const ground *g, const sf_graph *step, const sf_plan_spec *spec,
                       sf_price *out)
{
    sf_arena arena = {0};
    sf_plan *plan = NULL;
    sf_costs *costs;
    bool good = sf_plan_of_spec(step, spec, NULL, g->cluster, NULL, &plan) == SF_OK &&
                sf_mesh_costs(g->cluster, &plan->mesh, &arena, NULL, &costs) == SF_OK &&
                sf_price_plan(step, plan, sf_cluster_target(g->cluster), costs, NULL, NULL, NULL,
                              out) == SF_OK;
    sf_plan_free(plan);
    sf_arena_free(&arena);
    return good;
}

static void test_folded(void **state)
{
    static const struct {
        const char *mesh, *recipe, *recompute;
        int micro_batches;
    } specs[] = {{"data=8", "zero1", NULL, 0},
                 {"data=8", "zero3", "layer", 2},
                 {"data=2,model=4", "2d+zero1", "cheap", 0},
                 {"model=8", "megatron", "none", 4},
                 {"data=4,seq=2", "sequence+zero2", "parts", 0},
                 {"replica=2,data=4", "replicas+zero3", "full", 0}};
    (void)state;
    ground g = open_ground("2x4xV100");
    sf_folded folded;
    sf_fold_step(g.graph, &folded);
    assert_true(folded.count > 1);
    for (size_t i = 0; i < sizeof specs / sizeof *specs / (test_short() ? 3 : 1); i++) {
        sf_plan_spec spec = {.size = sizeof spec,
                             .mesh = specs[i].mesh,
                             .recipe = specs[i].recipe,
                             .recompute = specs[i].recompute,
                             .micro_batches = specs[i].micro_batches};
        sf_price whole, part;
        double seconds = 0, memory = 0;
        assert_true(price_spec(&g, g.graph, &spec, &whole));
        for (int s = 0; s < folded.count; s++) {
            assert_true(price_spec(&g, folded.steps[s], &spec, &part));
            seconds += folded.weight[s] * part.seconds;
            memory += folded.weight[s] * (double)part.memory;
        }
        double time_error = seconds / whole.seconds - 1,
               memory_error = memory / (double)whole.memory - 1;
        if (fabs(time_error) >= SF_FOLD_TIME_ERROR || fabs(memory_error) >= SF_FOLD_MEMORY_ERROR)
            fail_msg("%s, %s: %.2f %% off in time, %.2f %% in memory", specs[i].mesh,
                     specs[i].recipe, 100 * time_error, 100 * memory_error);
    }
    sf_folded_free(&folded);
    close_ground(&g);
}

/* Of all recipes on all devices that fit. */
static double find_fastest_recipe(const ground *g, int64_t memory)
{
    double fastest = HUGE_VAL;
    for (int i = 0; sf_recipe_name(i); i++) {
        const char *const *axes =
            (const char *const[]){"data=8",  "data=8", "data=8",   "data=8",        "data=8",
                                  "model=8", "seq=8",  "expert=8", "data=2,model=4"};
        sf_plan_spec spec = {.size = sizeof spec, .mesh = axes[i], .recipe = sf_recipe_name(i)};
        sf_price price;
        if (price_spec(g, g->graph, &spec, &price) && price.memory <= memory)
            fastest = fmin(fastest, price.seconds);
    }
    return fastest;
}

static void search_under(const ground *g, const sf_plan_spec *said, int64_t memory, int budget,
                         sf_queue_found *out)
{
    sf_choice_rules rules;
    assert_true(sf_choice_rules_read(said, &rules));
    sf_queue_options options = {.cluster = g->cluster,
                                .target = sf_cluster_target(g->cluster),
                                .rules = &rules,
                                .memory = memory,
                                .width = 2,
                                .budget = budget};
    assert_int_equal(sf_search_queue(g->graph, &options, out), SF_OK);
}

static void test_queue(void **state)
{
    (void)state;
    ground g = open_ground("8xV100");
    sf_queue_found found, fixed;
    sf_plan_spec said = {.size = sizeof said};
    int64_t memory = INT64_C(32) << 30;
    search_under(&g, &said, memory, test_short() ? 40 : 80, &found);
    assert_non_null(found.plan);
    assert_true(found.price.memory <= memory);
    assert_true(found.price.seconds <= 1.001 * find_fastest_recipe(&g, memory));
    said.mesh = "data=2,model=4";
    said.micro_batches = 2;
    search_under(&g, &said, memory, 1, &fixed);
    assert_non_null(fixed.plan);
    assert_int_equal(fixed.choice.axes[SF_AXIS_MODEL], 4);
    assert_int_equal(fixed.plan->micro_batches, 2);
    sf_plan_free(found.plan);
    sf_plan_free(fixed.plan);
    close_ground(&g);
}

/* What `sheaf plan` answers is no slower than what the queue finds, with tight memory too. */
static void test_answer(void **state)
{
    (void)state;
    sf_graph *graph = test_step("gpt-micro");
    static const char *const clusters[] = {"1x4xV100", "2x2xA100@10G"};
    for (size_t c = 0; c < (test_short() ? 1 : sizeof clusters / sizeof *clusters); c++) {
        ground g = {.graph = graph};
        sf_queue_found found;
        sf_plan *answer;
        sf_plan_spec said = {.size = sizeof said};
        sf_plan_options options = {.size = sizeof options, .threads = 1, .margin = -1, .level = 2};
        assert_int_equal(sf_cluster_open(clusters[c], NULL, &g.cluster), SF_OK);
        options.cluster = g.cluster;
        search_under(&g, &said, 0, 60, &found);
        assert_non_null(found.plan);
        for (int tight = 0; tight < 2; tight++) {
            assert_int_equal(sf_plan_search(graph, &said, &options, NULL, &answer), SF_OK);
            assert_true(answer->predicted->seconds <= 1.001 * found.price.seconds);
            said.memory = found.price.memory;
            sf_plan_free(answer);
        }
        sf_plan_free(found.plan);
        sf_cluster_free(g.cluster);
    }
    sf_graph_free(graph);
}

static void test_rules(void **state)
{
    sf_choice_rules rules;
    sf_choice choice = {.axes = {1, 2, 1, 4, 1, 1, 1}, .micro_batches = 4, .chunks = 1};
    (void)state;
    sf_plan_spec said = {.size = sizeof said, .stages = "4", .schedule = "interleaved:2"};
    assert_true(sf_choice_rules_read(&said, &rules));
    assert_true(sf_choice_obey(&rules, &choice)); /* 2 groups with 2 stages each */
    choice.axes[SF_AXIS_PIPE] = 4;
    assert_false(sf_choice_obey(&rules, &choice));
    said.mesh = "rows=8";
    assert_false(sf_choice_rules_read(&said, &rules));
    said.mesh = NULL;
    said.recipe = "dp";
    assert_false(sf_choice_rules_read(&said, &rules));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folded),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
