/* Plans in stages that a search finds. */
#include "search/pipeline_search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/pipeline/pipeline.h"
#include "plan/plan.h"
#include "sheaf/sheaf.h"
#include "support/chain.h"
#include "support/sanitized.h"

static sf_plan *find_plan(const sf_graph *graph, const char *name, const char *stages,
                          sf_plan_options options)
{
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster;
    sf_plan_spec spec = {.size = sizeof spec, .stages = stages};
    sf_plan *plan;
    assert_int_equal(sf_cluster_open(name, NULL, &cluster), SF_OK);
    options.size = sizeof options;
    options.cluster = cluster;
    if (sf_plan_search(graph, &spec, &options, diag, &plan) != SF_OK)
        fail_msg("%s: %s", name, sf_diag_text(diag, 0));
    assert_int_equal(sf_plan_check(plan, graph, 0, NULL), SF_OK);
    sf_cluster_free(cluster);
    sf_diag_free(diag);
    return plan;
}

/* A batch that cannot be cut, or only into so many turns, has a pipeline in as many. */
static void test_few_turns(void **state)
{
    (void)state;
    static const int batches[] = {1, 2, 3, 6};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        sf_graph *graph = test_chain(4, batches[i], 64, false);
        sf_plan *plan =
            find_plan(graph, "2xV100", "2", (sf_plan_options){.size = sizeof(sf_plan_options)});
        assert_non_null(plan->pipeline);
        assert_int_equal(batches[i] % (int)plan->pipeline->schedule.pipe.nmicrobatches, 0);
        sf_plan_free(plan);
        sf_graph_free(graph);
    }
}

/* Layouts that are searched for inside of groups are no slower than those of recipes. */
static void test_searched_layouts(void **state)
{
    (void)state;
    static const struct {
        int layers, batch, width;
        const char *cluster;
    } cases[] = {{4, 64, 1024, "4xV100"}, {4, 512, 512, "2x2xV100"}, {6, 8, 2048, "2x2xA100"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_graph *graph = test_chain(cases[i].layers, cases[i].batch, cases[i].width, false);
        sf_plan_options searched = {.size = sizeof searched}, recipes = {.recipes = true};
        sf_plan *a = find_plan(graph, cases[i].cluster, "2", searched);
        sf_plan *b = find_plan(graph, cases[i].cluster, "2", recipes);
        if (a->predicted->seconds > b->predicted->seconds)
            fail_msg("case %zu: %g s searched, %g s by recipes", i, a->predicted->seconds,
                     b->predicted->seconds);
        assert_string_equal(a->mesh.axes[0].name, SF_PIPE_AXIS);
        sf_plan_free(a);
        sf_plan_free(b);
        sf_graph_free(graph);
    }
}

/* However many threads there are, the same is found, of small steps and of large ones: one, three and five; short, one and five. */
static void test_threads(void **state)
{
    (void)state;
    static const struct {
        int layers;
        bool is_large;
    } cases[] = {{6, false}, {800, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_graph *graph = test_chain(cases[i].layers, 64, 64, false);
        sf_buf texts[3] = {0};
        assert_int_equal(graph->nnodes > SF_SMALL_STEP, cases[i].is_large);
        for (int t = 0; t < 3; t += test_short() ? 2 : 1) {
            sf_plan_options options = {
                .size = sizeof options, .threads = 1 + 2 * t, .level = test_short() ? 2 : 3};
            sf_plan *plan = find_plan(graph, "2x4xV100", "4", options);
            sf_plan_write(plan, graph, NULL, &texts[t]);
            sf_plan_free(plan);
            assert_string_equal(texts[0].text, texts[t].text);
        }
        for (int t = 0; t < 3; t++)
            sf_buf_free(&texts[t]);
        sf_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_few_turns),
                                       cmocka_unit_test(test_searched_layouts),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
