/* What estimates say of plans that are made to fit by computing again: the less memory there is, the more time it takes,
 * and never more than computing all again that can be. */
#include "search/price/spare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan/recompute_policy.h"
#include "run/runner.h"
#include "search/price/estimate.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"

enum { LIMITS = 8 };

typedef struct ground {
    sf_graph *graph;
    sf_plan *plan;
    sf_cluster *cluster;
    sf_costs *costs;
    sf_arena arena;
    bool *recomputed;
} ground;

static ground open_ground(const char *step, const char *recipe, int ranks)
{
    ground g = {.graph = test_step(step)};
    g.plan = test_plan(g.graph, recipe, ranks, NULL, NULL);
    assert_int_equal(sf_cluster_open("1x8xV100", NULL, &g.cluster), SF_OK);
    assert_int_equal(sf_mesh_costs(g.cluster, &g.plan->mesh, &g.arena, NULL, &g.costs), SF_OK);
    sf_plan *marked = sf_plan_copy(g.plan, g.graph);
    assert_int_equal(sf_plan_recompute(g.graph, marked, "full", NULL), SF_OK);
    g.recomputed =
        sf_arena_copy(&g.arena, marked->recomputed, g.graph->nnodes * sizeof *g.recomputed);
    sf_plan_free(marked);
    return g;
}

static void close_ground(ground *g)
{
    sf_plan_free(g->plan);
    sf_cluster_free(g->cluster);
    sf_graph_free(g->graph);
    sf_arena_free(&g->arena);
}

/* Within so much memory; -1: nothing is computed again. */
static sf_price estimate(ground *g, int64_t memory)
{
    sf_price price;
    const sf_efforts *efforts = sf_efforts_new(g->graph, sf_engine_target(NULL), &g->arena);
    if (memory >= 0)
        efforts = sf_efforts_spare(efforts, g->recomputed, memory, &g->arena);
    assert_int_equal(sf_estimate_plan(efforts, g->plan, g->costs, NULL, NULL, NULL, &price), SF_OK);
    return price;
}

static void test_limits(void **state)
{
    (void)state;
    static const struct {
        const char *step, *recipe;
        int ranks;
    } cases[] = {{"gpt-micro", "dp", 1},
                 {"gpt-micro", "dp", 2},
                 {"gpt-micro", "zero3", 4},
                 {"moe-micro", "dp", 2},
                 {"gpt-micro", "megatron", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ground g = open_ground(cases[i].step, cases[i].recipe, cases[i].ranks);
        sf_price kept = estimate(&g, -1), all = estimate(&g, 0);
        assert_true(all.memory < kept.memory);
        assert_true(all.recomputed > 0 && kept.recomputed == 0);
        double before = 0;
        for (int l = LIMITS; l >= 0; l--) {
            int64_t limit = all.memory + (kept.memory - all.memory) * l / LIMITS;
            sf_price p = estimate(&g, limit);
            assert_int_equal(p.memory, all.memory);
            assert_true(l == LIMITS ? p.recomputed == 0 : p.recomputed >= before);
            assert_true(p.recomputed <= all.recomputed * 1.000001);
            assert_true(p.seconds - p.recomputed <= kept.seconds * 1.000001);
            assert_true(p.seconds - p.recomputed >= kept.seconds * 0.999999);
            before = p.recomputed;
        }
        close_ground(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
