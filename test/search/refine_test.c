/* A plan on a mesh whose axis is cut in two is the same plan: it checks, and takes, but for
 * latencies and small copies, the same memory and time. */
#include "search/refine.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "local/check_local.h"
#include "run/runner.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"

static sf_price price_of(const sf_graph *graph, const sf_plan *plan, const sf_cluster *cluster)
{
    sf_arena arena = {0};
    sf_costs *costs;
    sf_price price;
    assert_int_equal(sf_mesh_costs(cluster, &plan->mesh, &arena, NULL, &costs), SF_OK);
    assert_int_equal(
        sf_price_plan(graph, plan, sf_engine_target(NULL), costs, NULL, NULL, NULL, &price), SF_OK);
    sf_arena_free(&arena);
    return price;
}

/* A plan of 8 ranks, in a node, lifted to `mesh` by cutting an axis. */
static void check_lift(const sf_graph *graph, const sf_plan *plan, const sf_mesh *mesh, int axis,
                       const sf_cluster *cluster)
{
    assert_true(sf_mesh_cuts(mesh, &plan->mesh, axis));
    sf_plan *lifted = sf_plan_lift(plan, graph, mesh, axis);
    sf_price before = price_of(graph, plan, cluster), after = price_of(graph, lifted, cluster);
    /* Slices are one for each axis, exchanges go along one axis at a time, and where there are two gathers the second can
     * go ahead: a little more or less. */
    if (!(fabs((double)(before.memory - after.memory)) <= 0.05 * (double)before.memory))
        fail_msg("%s: %" PRId64 " bytes before, %" PRId64 " lifted", plan->recipe, before.memory,
                 after.memory);
    if (!(fabs(before.seconds - after.seconds) <= 0.15 * before.seconds))
        fail_msg("%s: %g s before, %g s lifted", plan->recipe, before.seconds, after.seconds);
    sf_diag *diag = sf_diag_new();
    sf_local *local = test_local(graph, lifted, 5);
    if (sf_check_local(local, diag) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_local_free(local);
    sf_diag_free(diag);
    sf_plan_free(lifted);
}

static void test_lift(void **state)
{
    (void)state;
    sf_cluster *cluster;
    int lifted = 0;
    assert_int_equal(sf_cluster_make(sf_str_of("1x8xV100"), NULL, &cluster), SF_OK);
    for (int i = 0; test_steps[i]; i++) {
        sf_graph *graph = test_step(test_steps[i]);
        for (int r = 0; sf_recipe_name(r); r++) {
            test_refusal refusal;
            sf_plan *plan = test_pin(graph, sf_recipe_name(r), 8, NULL, NULL, &refusal);
            if (!plan)
                continue;
            sf_mesh one[] = {{2, {{"a", 4}, {"b", 2}}}, {2, {{"a", 2}, {"b", 4}}}};
            sf_mesh two = {3, {{"a", 2}, {"b", 2}, {"c", 2}}};
            for (int m = 0; m < 2 && plan->mesh.naxes == 1; m++)
                check_lift(graph, plan, &one[m], 0, cluster);
            if (plan->mesh.naxes == 2)
                check_lift(graph, plan, &two, plan->mesh.axes[0].size == 4 ? 0 : 1, cluster);
            sf_plan_free(plan);
            lifted++;
        }
        sf_graph_free(graph);
    }
    sf_cluster_free(cluster);
    assert_true(lifted > 0);
}

static void test_order(void **state)
{
    (void)state;
    sf_priced fast = {.price = {.seconds = 1, .memory = 9}, .fits = true};
    sf_priced slow = {.price = {.seconds = 2, .memory = 1}, .fits = true};
    sf_priced large = {.price = {.seconds = 0.1, .memory = 99}};
    sf_priced larger = {.price = {.seconds = 0.01, .memory = 100}};
    assert_true(sf_priced_better(&fast, &slow) && !sf_priced_better(&slow, &fast));
    assert_true(sf_priced_better(&slow, &large) && !sf_priced_better(&large, &slow));
    assert_true(sf_priced_better(&large, &larger) && !sf_priced_better(&larger, &large));
    assert_false(sf_priced_better(&fast, &fast));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lift),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
