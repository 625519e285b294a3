/* Finding a plan for steps of many layers: it fits, more memory does no harm, and it is found in time. */
#include "search/finalists.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "run/runner.h"
#include "sheaf/sheaf.h"
#include "support/chain.h"
#include "support/sanitized.h"

#define MARGIN 0.01
#define BUDGET 60.0 /* seconds of processors; it takes about 10 */

typedef struct asked {
    int layers, batch, width;
    const char *cluster;
    int64_t memory; /* bytes of a rank */
    int stages;     /* 0: as many as are good */
} asked;

/* The plan is a row, and no row says of what was not simulated that it fits and is faster. */
static void check_table(const sf_prediction *predicted)
{
    bool is_row = predicted->nalternatives == 0;
    for (int i = 0; i < predicted->nalternatives; i++) {
        const sf_alternative *a = &predicted->alternatives[i];
        assert_true(!a->fits || a->lowered || a->seconds >= predicted->seconds);
        is_row = is_row || (a->lowered && a->fits && a->seconds == predicted->seconds &&
                            a->memory == predicted->memory);
    }
    assert_true(is_row);
}

/* The seconds of a step of the plan that is found; it fits. */
static double plan_chain(const asked *a)
{
    sf_graph *graph = test_chain(a->layers, a->batch, a->width, false);
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster;
    sf_plan *plan;
    assert_int_equal(sf_cluster_open(a->cluster, NULL, &cluster), SF_OK);
    sf_search_options options = {.cluster = cluster,
                                 .target = sf_engine_target(NULL),
                                 .memory = a->memory,
                                 .limited = true,
                                 .margin = MARGIN,
                                 .level = 3,
                                 .as_text = true,
                                 .stages = a->stages};
    if (sf_choose_plan(graph, &options, NULL, diag, &plan) != SF_OK)
        fail_msg("%d layers: %s", a->layers, sf_diag_text(diag, 0));
    assert_true(plan->predicted->memory <= a->memory);
    check_table(plan->predicted);
    double seconds = plan->predicted->seconds;
    sf_plan_free(plan);
    sf_cluster_free(cluster);
    sf_diag_free(diag);
    sf_graph_free(graph);
    return seconds;
}

#define KIB INT64_C(1024)

/* A step of more than SF_SMALL_STEP nodes, with room; a small one with little memory, for which far more is tried; and one in
 * stages. A plan fits, with twice the memory the plan is not slower, and all of it takes no more processor time than BUDGET. */
static void test_memory_and_budget(void **state)
{
    (void)state;
    static const asked cases[] = {{400, 64, 64, "4xV100", KIB * KIB * KIB, 0},
                                  {12, 64, 64, "4xV100", 200 * KIB, 0},
                                  {12, 64, 64, "4xV100", 400 * KIB, 4}};
    clock_t began = clock();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        asked more = cases[i];
        more.memory *= 2;
        double seconds = plan_chain(&cases[i]);
        assert_true(plan_chain(&more) <= seconds * (1 + 2 * MARGIN));
    }
    double spent = (double)(clock() - began) / CLOCKS_PER_SEC;
    print_message("%g s of processors\n", spent);
    assert_true(test_sanitized() || spent < BUDGET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_and_budget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
