/* What it costs to find a plan, counted and not timed: programs that are lowered, plans that are estimated, pipelines that are cut
 * into stages. So a search that does more than it must shows on every machine. */
#include "search/finalists.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "run/runner.h"
#include "sheaf/sheaf.h"
#include "support/chain.h"

typedef struct asked {
    int layers, batch, width;
    const char *cluster;
    int64_t memory; /* bytes of a rank */
    int stages;     /* 0: as many as are good */
} asked;

static sf_search_spent plan_chain(const asked *a, double *seconds)
{
    sf_search_spent spent = {0};
    sf_graph *graph = test_chain(a->layers, a->batch, a->width, false);
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster;
    sf_plan *plan;
    assert_int_equal(sf_cluster_open(a->cluster, NULL, &cluster), SF_OK);
    sf_search_options options = {.cluster = cluster,
                                 .target = sf_engine_target(NULL),
                                 .memory = a->memory,
                                 .limited = true,
                                 .margin = 0.01,
                                 .level = 3,
                                 .as_text = true,
                                 .stages = a->stages,
                                 .spent = &spent};
    if (sf_choose_plan(graph, &options, NULL, diag, &plan) != SF_OK)
        fail_msg("%d layers: %s", a->layers, sf_diag_text(diag, 0));
    assert_true(plan->predicted->memory <= a->memory);
    *seconds = plan->predicted->seconds;
    sf_plan_free(plan);
    sf_cluster_free(cluster);
    sf_diag_free(diag);
    sf_graph_free(graph);
    return spent;
}

#define KIB INT64_C(1024)

/* A step of more than SF_SMALL_STEP nodes, with room; a small one with little, of which far more is tried; and one in stages. */
static void test_costs(void **state)
{
    (void)state;
    static const struct {
        asked of;
        sf_search_spent most;
    } cases[] = {
        {{400, 64, 64, "4xV100", KIB * KIB * KIB, 0}, {32, 44, 10}},
        {{12, 64, 64, "4xV100", 200 * KIB, 0}, {260, 84, 22}},
        {{12, 64, 64, "4xV100", 400 * KIB, 4}, {13, 0, 4}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds;
        const sf_search_spent *most = &cases[i].most;
        sf_search_spent spent = plan_chain(&cases[i].of, &seconds);
        print_message("case %zu: %d programs, %d jobs, %d drafts, %g s\n", i, spent.programs,
                      spent.jobs, spent.drafts, seconds);
        assert_in_range(spent.programs, 1, most->programs);
        assert_true(spent.jobs <= most->jobs);
        assert_true(spent.drafts <= most->drafts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_costs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
