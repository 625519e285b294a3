/* Forward passes through the same layers: they are recognised, cut alike, and refused if their
 * gradients are not of the last. */
#include "plan/pipeline/recycling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/pipeline/stage_costs.h"
#include "plan/pipeline_request.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"

static void test_rounds_are_recognised(void **state)
{
    (void)state;
    for (int i = 0; test_steps[i]; i++) {
        sf_arena arena = {0};
        sf_graph *graph = test_step(test_steps[i]);
        uint32_t *of, rounds = sf_find_rounds(graph, &arena, &of);
        /* slices of a stack of weights are those of the stack: the distinction that sf_cut_rounds
         * makes */
        uint32_t expected =
            strstr(test_steps[i], "evoformer") || strstr(test_steps[i], "scan") ? 3 : 1;
        if (rounds != expected)
            fail_msg("%s: %u rounds", test_steps[i], rounds);
        for (uint32_t n = 0; n < graph->top->nnodes; n++) {
            const sf_node *node = sf_top_node(graph, n);
            assert_true(of[node->id] < rounds);
            for (uint32_t o = 0; o < node->noperands && node->phase == SF_FORWARD; o++) {
                const sf_node *maker = sf_maker(graph, node->operands[o]);
                assert_true(!maker || of[maker->id] <= of[node->id]);
            }
        }
        sf_graph_free(graph);
        sf_arena_free(&arena);
    }
}

/* A weight is on one group, in whichever rounds it is read; only the last round has a backward pass worth the name. */
static void test_rounds_are_cut_alike(void **state)
{
    (void)state;
    for (uint32_t groups = 2; groups <= 3; groups++) {
        sf_arena arena = {0};
        sf_diag *diag = sf_diag_new();
        sf_graph *graph = test_step("evoformer-micro");
        uint32_t *forward;
        sf_stages stages;
        double *time = sf_times_by_ops(graph, &arena);
        sf_stage_request request = {.count = groups, .time = sf_forward_times(graph, time, &arena)};
        if (sf_cut_rounds(graph, 3, &request, time, &arena, diag, &forward) != SF_OK ||
            sf_stages_complete(graph, 3 * groups, forward, &arena, diag, &stages) != SF_OK)
            fail_msg("%u groups: %s", groups, sf_diag_text(diag, 0));
        double backward[9] = {0};
        for (uint32_t i = 0; i < graph->top->nnodes; i++) {
            const sf_node *node = sf_top_node(graph, i);
            uint32_t stage = stages.of_node[node->id];
            if (node->phase == SF_BACKWARD && !stages.anywhere[node->id])
                backward[stage] += time[node->id];
            for (uint32_t o = 0; o < node->noperands && node->phase == SF_FORWARD; o++) {
                const sf_value_info *info = &graph->values[node->operands[o]];
                if (info->node == SF_NONE && graph->arguments[info->index].role == SF_ROLE_PARAM &&
                    !stages.anywhere[node->id])
                    assert_int_equal(stage % groups, stages.of_argument[info->index] % groups);
            }
        }
        for (uint32_t s = 0; s < 3 * groups; s++)
            assert_true(s < 2 * groups ? backward[s] < backward[2 * groups] / 4 : backward[s] > 0);
        sf_graph_free(graph);
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

static void test_what_are_no_rounds_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *step, *stages, *schedule, *message;
        sf_status status;
    } table[] = {
        {"gpt-micro", "6", "3f1b", "the step has 1", SF_EMISMATCH},
        {"t5-micro", "6", "3f1b", "the step has 1", SF_EMISMATCH}, /* tied weights are not rounds */
        {"evoformer-micro", "3", "3f1b",
         "schedule 3f1b does not run 3 stages: 2 pipeline ranks have 6", SF_EUSAGE},
        {"evoformer-micro", "4", "3f1b:2", "take 3f1b:3", SF_EMISMATCH},
        {"gpt-scan-micro", "6", "3f1b", "3 forward passes of the step", SF_EMISMATCH},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        sf_diag *diag = sf_diag_new();
        sf_graph *graph = test_step(table[i].step);
        sf_plan *plan = NULL;
        sf_plan_spec options = {.size = sizeof options,
                                .stages = table[i].stages,
                                .schedule = table[i].schedule,
                                .micro_batches = 2};
        assert_int_equal(sf_pin_step(graph, &options, diag, &plan), table[i].status);
        bool found = false;
        for (int t = 0; sf_diag_text(diag, t); t++)
            found = found || strstr(sf_diag_text(diag, t), table[i].message);
        if (!found)
            fail_msg("%s: %s", table[i].step, sf_diag_text(diag, 0));
        sf_graph_free(graph);
        sf_diag_free(diag);
    }
}

/* The pipeline of a micro step, in 4 micro-batches. */
static sf_pipeline pipeline_of(const sf_graph *graph, const char *stages, const char *schedule,
                               sf_arena *arena)
{
    sf_pipeline out;
    sf_diag *diag = sf_diag_new();
    sf_plan_spec said = {
        .size = sizeof said, .stages = stages, .schedule = schedule, .micro_batches = 4};
    sf_pipeline_costs costs = {0};
    sf_spec spec;
    assert_int_equal(sf_spec_read(&said, arena, diag, &spec), SF_OK);
    if (sf_pipeline_by(graph, &spec, &costs, arena, diag, &out) != SF_OK)
        fail_msg("%s stages by %s: %s", stages, schedule, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return out;
}

/* A search for the order has the stages that 3f1b has; where there are no rounds, those that take equally long. */
static void test_an_order_is_found_for_them(void **state)
{
    (void)state;
    static const struct {
        const char *step, *stages, *other_stages, *other;
    } table[] = {{"evoformer-micro", "6", "6", "3f1b"},
                 {"evoformer-micro", "9", "9", "3f1b"},
                 {"gpt-scan-micro", "6", "6", "interleaved:3"},
                 {"gpt-micro", "6", "6", "interleaved:3"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        sf_arena arena = {0};
        sf_graph *graph = test_step(table[i].step);
        sf_pipeline found = pipeline_of(graph, table[i].stages, "search:3", &arena),
                    named = pipeline_of(graph, table[i].other_stages, table[i].other, &arena);
        assert_memory_equal(found.stages.of_node, named.stages.of_node,
                            graph->nnodes * sizeof *found.stages.of_node);
        sf_graph_free(graph);
        sf_arena_free(&arena);
    }
}

/* Times of earlier rounds count where their weights are: stages of all rounds together take about
 * the same. */
static void test_all_rounds_count(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_graph *graph = test_step("evoformer-micro");
    sf_pipeline pipeline = pipeline_of(graph, "6", "3f1b", &arena);
    const double *time = sf_times_by_ops(graph, &arena);
    double of_group[2] = {0};
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->phase != SF_UPDATE && !pipeline.stages.anywhere[node->id])
            of_group[pipeline.stages.of_node[node->id] % 2] += time[node->id];
    }
    double most = of_group[0] > of_group[1] ? of_group[0] : of_group[1];
    print_message("  %.3g and %.3g\n", of_group[0], of_group[1]);
    assert_true(most < 0.56 * (of_group[0] + of_group[1]));
    sf_graph_free(graph);
    sf_arena_free(&arena);
}

static void test_they_run(void **state)
{
    (void)state;
    sf_graph *graph = test_step("evoformer-micro");
    static const struct {
        const char *stages, *schedule, *recipe, *recompute;
        int ranks;
    } table[] = {{"6", "3f1b", NULL, NULL, 0},          {"6", "3f1b", NULL, "full", 0},
                 {"9", "3f1b", NULL, NULL, 0},          {"6", "3f1b", "megatron", NULL, 4},
                 {"6", "search:3", NULL, "layer", 0},   {"9", "search:3", NULL, NULL, 0},
                 {"6", "search:3", "megatron", NULL, 4}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        sf_diag *diag = sf_diag_new();
        sf_plan *plan = NULL;
        sf_verify_report *report = NULL;
        sf_plan_spec options = {.size = sizeof options,
                                .stages = table[i].stages,
                                .schedule = table[i].schedule,
                                .micro_batches = 2,
                                .recipe = table[i].recipe,
                                .recompute = table[i].recompute,
                                .ranks = table[i].ranks};
        if (sf_pin_step(graph, &options, diag, &plan) != SF_OK ||
            sf_plan_check(plan, graph, 0, diag) != SF_OK ||
            sf_verify_plan(graph, plan, &SF_OPTIONS(sf_verify_options, .steps = 2), diag,
                           &report) != SF_OK)
            fail_msg("%s stages: %s", table[i].stages, sf_diag_text(diag, 0));
        assert_true(report->passed);
        sf_verify_free(report);
        sf_plan_free(plan);
        sf_diag_free(diag);
    }
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_are_recognised),
        cmocka_unit_test(test_rounds_are_cut_alike),
        cmocka_unit_test(test_what_are_no_rounds_is_refused),
        cmocka_unit_test(test_an_order_is_found_for_them),
        cmocka_unit_test(test_all_rounds_count),
        cmocka_unit_test(test_they_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
