/* The climb from a plan: what a person fixed stays fixed, and what is open is never worse than any one thing fixed by hand. */
#include "search/climb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "run/runner.h"
#include "search/price/price.h"
#include "search/specs/spec_plan.h"
#include "sheaf/sheaf.h"
#include "support/chain.h"
#include "support/plans.h"
#include "support/sanitized.h"

static sf_plan *search(const sf_graph *graph, const char *cluster, const sf_plan_spec *spec)
{
    sf_cluster *opened;
    sf_plan *plan = NULL;
    sf_plan_options options = {.size = sizeof options, .threads = 1, .margin = -1};
    assert_int_equal(sf_cluster_open(cluster, NULL, &opened), SF_OK);
    options.cluster = opened;
    assert_int_equal(sf_plan_search(graph, spec, &options, NULL, &plan), SF_OK);
    sf_cluster_free(opened);
    return plan;
}

static bool has_sharded_parameters(const sf_graph *graph, const sf_plan *plan)
{
    bool any = false;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        for (int a = 0; a < plan->mesh.naxes; a++)
            any = any || (graph->arguments[i].role == SF_ROLE_PARAM &&
                          plan->arguments[i].axes[a].kind == SF_SPLIT);
    return any;
}

/* Micro-batches, recompute and the schedule, too. */
static void test_numbers_said_stay(void **state)
{
    (void)state;
    sf_graph *graph = test_chain(8, 64, 64, false);
    static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1"};
    for (int turns = 1; turns <= 8; turns *= 2) {
        sf_plan_spec spec = {.size = sizeof spec, .micro_batches = turns, .recompute = "layer"};
        sf_plan *plan = search(graph, "1x2xV100", &spec);
        assert_int_equal(plan->micro_batches > 1 ? plan->micro_batches : 1, turns);
        assert_string_equal(plan->recompute, "layer");
        sf_plan_free(plan);
    }
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        sf_plan_spec spec = {.size = sizeof spec, .stages = "2", .schedule = schedules[i]};
        sf_plan *plan = search(graph, "1x2xV100", &spec);
        assert_string_equal(plan->pipeline->name, schedules[i]);
        sf_plan_free(plan);
    }
    sf_graph_free(graph);
}

/* A batch that is a power of two is cut into many, though the groups are three. */
static void test_three_groups(void **state)
{
    (void)state;
    sf_graph *graph = test_chain(12, 8192, 1024, false);
    sf_plan_spec spec = {.size = sizeof spec, .stages = "3", .schedule = "gpipe"};
    sf_plan *open = search(graph, "1x3xV100", &spec);
    assert_true(open->micro_batches > 2);
    for (int turns = 1; turns <= 16; turns *= 2) {
        spec.micro_batches = turns;
        sf_plan *plan = search(graph, "1x3xV100", &spec);
        assert_true(open->predicted->seconds <= plan->predicted->seconds * 1.001);
        sf_plan_free(plan);
    }
    sf_plan_free(open);
    sf_graph_free(graph);
}

/* A real step on one axis: open, state is sharded between steps; what a person said is kept, and is not faster. */
static void test_words_stay(void **state)
{
    (void)state;
    static const char *const pins[] = {"params/*=R@data"};
    sf_graph *graph = NULL;
    if (test_short() ||
        sf_load("examples/gpt2-124m.stablehlo.mlir.gz", NULL, NULL, &graph) != SF_OK)
        skip();
    sf_plan_spec spec = {.size = sizeof spec, .mesh = "data=4", .stages = "1"};
    sf_plan *open = search(graph, "4xH100", &spec);
    assert_true(open->passes.list[0] != '\0');
    assert_true(has_sharded_parameters(graph, open));
    spec.passes = "none";
    sf_plan *bare = search(graph, "4xH100", &spec);
    assert_string_equal(bare->passes.list, "");
    spec.passes = NULL;
    spec.pins = pins;
    spec.npins = 1;
    sf_plan *pinned = search(graph, "4xH100", &spec);
    assert_false(has_sharded_parameters(graph, pinned));
    assert_true(open->predicted->seconds < bare->predicted->seconds);
    assert_true(open->predicted->seconds < pinned->predicted->seconds);
    sf_plan_free(open);
    sf_plan_free(bare);
    sf_plan_free(pinned);
    sf_graph_free(graph);
}

/* What passes gather keeps room for what kernels work in, which on this device is more than the whole step. */
static void test_passes_leave_room(void **state)
{
    (void)state;
    enum { PARTS = 8 };
    sf_graph *graph = test_step("gpt-micro");
    sf_cluster *cluster;
    sf_arena arena = {0};
    sf_mesh mesh;
    sf_costs *costs;
    int differ = 0;
    int64_t memory[PARTS + 3] = {0}, before = 0;
    assert_int_equal(sf_cluster_open("4xH100", NULL, &cluster), SF_OK);
    assert_int_equal(sf_mesh_parse(sf_str_of("data=4"), &arena, NULL, &mesh), SF_OK);
    assert_int_equal(sf_mesh_costs(cluster, &mesh, &arena, NULL, &costs), SF_OK);
    /* first without passes, then with all the memory that there is, then with some of what passes would take */
    for (int i = 0; i < PARTS + 3; i++) {
        sf_plan_spec spec = {.size = sizeof spec,
                             .mesh = "data=4",
                             .recipe = "zero3",
                             .passes = i == 0 ? "none" : "fsdp,prefetch,unshard"};
        sf_plan *plan;
        sf_price price;
        if (i > 1)
            spec.memory = memory[0] + (memory[1] - memory[0]) * (i - 2) / PARTS;
        assert_int_equal(sf_plan_of_spec(graph, &spec, NULL, cluster, NULL, &plan), SF_OK);
        assert_int_equal(
            sf_price_plan(graph, plan, sf_cluster_target(cluster), costs, NULL, NULL, NULL, &price),
            SF_OK);
        assert_true(price.by_kind[SF_MEMORY_SCRATCH] > price.memory / 2);
        assert_true(i < 2 || price.memory <= spec.memory);
        memory[i] = price.memory;
        differ += i > 1 && price.memory != before;
        before = price.memory;
        sf_plan_free(plan);
    }
    assert_true(memory[1] > memory[0]);
    assert_true(differ > 2);
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_said_stay),
        cmocka_unit_test(test_three_groups),
        cmocka_unit_test(test_words_stay),
        cmocka_unit_test(test_passes_leave_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
