/* What no plan takes less than, beside what recipes are estimated to take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cluster/cluster.h"
#include "run/runner.h"
#include "search/price/estimate.h"
#include "search/search.h"
#include "support/plans.h"

/* No recipe is below the bound, and on one device, where nothing is in parts, it is near what there is. */
static void test_memory(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-micro", "evoformer-micro", "moe-micro"};
    static const char *const recipes[] = {"dp", "zero1", "zero3", "megatron"};
    sf_cluster *cluster;
    assert_int_equal(sf_cluster_open("1x2xV100", NULL, &cluster), SF_OK);
    for (size_t s = 0; s < sizeof names / sizeof *names; s++) {
        sf_graph *graph = test_step(names[s]);
        sf_arena arena = {0};
        const sf_efforts *efforts = sf_efforts_new(graph, sf_engine_target(NULL), &arena);
        double whole = sf_memory_bound(efforts, 1);
        assert_float_equal(sf_memory_bound(efforts, 2), whole / 2, 1);
        for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
            sf_plan *plan = test_plan(graph, recipes[r], 2, NULL, NULL);
            sf_costs *costs;
            sf_price price;
            assert_int_equal(sf_mesh_costs(cluster, &plan->mesh, &arena, NULL, &costs), SF_OK);
            assert_int_equal(sf_estimate_plan(efforts, plan, costs, NULL, NULL, NULL, &price),
                             SF_OK);
            assert_true((double)price.memory >= whole / 2);
            assert_true((double)price.memory <= 2.5 * whole);
            sf_plan_free(plan);
        }
        sf_arena_free(&arena);
        sf_graph_free(graph);
    }
    sf_cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
