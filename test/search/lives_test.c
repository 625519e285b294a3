/* What could be less: parts of the memory are bounds of the whole, and take away what they say. */
#include "search/lives.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sheaf/sheaf.h"
#include "support/plans.h"

/* Returns whether it helps to compute activations again. */
static bool check_relief(const sf_graph *graph, const sf_plan *plan, const sf_cluster *cluster)
{
    sf_arena arena = {0};
    sf_costs *costs;
    sf_price price;
    sf_relief relief;
    int sizes[SF_MAX_AXES];
    for (int a = 0; a < plan->mesh.naxes; a++)
        sizes[a] = plan->mesh.axes[a].size;
    const sf_efforts *efforts = sf_efforts_new(graph, &arena);
    assert_int_equal(sf_costs_new(cluster, plan->mesh.naxes, sizes, 0, &arena, NULL, &costs),
                     SF_OK);
    assert_int_equal(sf_price_plan(efforts, plan, costs, NULL, NULL, NULL, &price), SF_OK);
    assert_int_equal(sf_find_relief(efforts, plan, NULL, &relief), SF_OK);
    int64_t batch = price.by_kind[SF_MEMORY_ACTIVATION] + price.by_kind[SF_MEMORY_BATCH];
    assert_true(relief.batch >= batch && relief.batch <= price.memory);
    assert_true(relief.state >= price.memory - batch && relief.state <= price.memory);
    assert_true(relief.state + relief.batch >= price.memory);
    /* What a step begins with cannot be computed again. */
    assert_true(relief.again <= price.memory);
    assert_true(relief.again >= price.by_kind[SF_MEMORY_PARAM] + price.by_kind[SF_MEMORY_STATE]);
    sf_arena_free(&arena);
    return relief.again < price.memory;
}

static void test_relief(void **state)
{
    (void)state;
    sf_cluster *cluster;
    int checked = 0, helped = 0;
    assert_int_equal(sf_cluster_make(sf_str_of("1x4xV100"), NULL, &cluster), SF_OK);
    for (int i = 0; test_steps[i]; i++) {
        sf_graph *graph = test_step(test_steps[i]);
        for (int r = 0; sf_recipe_name(r); r++) {
            test_refusal refusal;
            sf_plan *plan = test_pin(graph, sf_recipe_name(r), 4, NULL, NULL, &refusal);
            if (!plan)
                continue;
            helped += check_relief(graph, plan, cluster);
            sf_plan_free(plan);
            checked++;
        }
        sf_graph_free(graph);
    }
    assert_true(checked > 10 && helped > 10);
    sf_cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_relief)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
