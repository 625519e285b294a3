/* sf_verify_plan: a good plan passes; a split run that computes another result is detected, and its
 * place is reported. */
#include "sheaf/sheaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/verify/verify.h"
#include "base/mem.h"

static const char step_file[] = "examples/gpt-micro.hlo";
static const char sidecar[] = "examples/gpt-micro.json";
static const char values_file[] = "examples/gpt-micro.io.safetensors";

/* The step with the first occurrence of `from` replaced; NULL: as it is. */
static sf_graph *load(const char *from, const char *to)
{
    FILE *file = fopen(step_file, "rb");
    assert_non_null(file);
    size_t room = 1 << 20;
    char *text = calloc(1, room), *changed = calloc(1, room);
    assert_true(text && changed);
    assert_true(fread(text, 1, room - 1, file) > 0);
    fclose(file);
    char *at = from ? strstr(text, from) : text;
    assert_non_null(at);
    snprintf(changed, room, "%.*s%s%s", (int)(at - text), text, from ? to : "",
             at + (from ? strlen(from) : 0));
    sf_load_options options = {.size = sizeof options, .sidecar = sidecar};
    sf_graph *graph;
    assert_int_equal(sf_load_text(changed, strlen(changed), "step", &options, NULL, &graph), SF_OK);
    free(text);
    free(changed);
    return graph;
}

static sf_plan *pin(const sf_graph *graph, const char *recipe, int ranks)
{
    sf_plan_spec options = {.size = sizeof options, .recipe = recipe, .ranks = ranks};
    sf_plan *plan;
    assert_int_equal(sf_pin_step(graph, &options, NULL, &plan), SF_OK);
    return plan;
}

static void test_passes(void **state)
{
    (void)state;
    static const struct {
        const char *recipe, *against;
        int ranks, steps;
    } cases[] = {{"dp", values_file, 2, 0}, {"zero3", values_file, 4, 2}, {"megatron", NULL, 2, 3}};
    sf_graph *graph = load(NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_plan *plan = pin(graph, cases[i].recipe, cases[i].ranks);
        sf_verify_options options = {
            .size = sizeof options, .against = cases[i].against, .steps = cases[i].steps};
        sf_verify_report *report;
        assert_int_equal(sf_verify_plan(graph, plan, &options, NULL, &report), SF_OK);
        assert_true(report->passed);
        assert_int_equal(report->ranks, cases[i].ranks);
        assert_int_equal(report->nresults, 110);
        assert_int_equal(report->nlosses, cases[i].steps ? cases[i].steps : 10);
        assert_true(report->loss_error < 1e-5);
        assert_true(report->losses[0] > 1);
        sf_verify_free(report);
        sf_plan_free(plan);
    }
    sf_graph_free(graph);
}

/* The unsplit run has another learning rate, decay of a moment, epsilon of Adam: as if the split
 * one had that error. */
static void test_finds_wrong_runs(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *worst;
    } cases[] = {
        {"constant(-0.001)", "constant(-0.00101)", "params"},
        {"constant(0.9)", "constant(0.91)", "mu"},
        {"constant(0.999)", "constant(0.998)", "nu"},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    sf_graph *graph = load(NULL, NULL);
    sf_plan *plan = pin(graph, "zero1", 2);
    for (size_t i = 0; i < CASES; i++) {
        sf_graph *other = load(cases[i].from, cases[i].to);
        sf_verify_options options = {.size = sizeof options, .against = values_file, .steps = 2};
        sf_verify_report *report;
        sf_diag *diag = sf_diag_new();
        sf_plan_trial trial = {.reference = other, .graph = graph, .plan = plan};
        assert_int_equal(sf_verify_trial(&trial, &options, diag, &report), SF_EMISMATCH);
        assert_false(report->passed);
        const sf_difference *worst = report->results[report->worst];
        if (!strstr(worst->name, cases[i].worst))
            fail_msg("%s: the worst is %s", cases[i].to, worst->name);
        assert_non_null(strstr(sf_diag_text(diag, 0), "on rank"));
        sf_diag_free(diag);
        sf_verify_free(report);
        sf_graph_free(other);
    }
    sf_plan_free(plan);
    sf_graph_free(graph);
}

static void test_refuses(void **state)
{
    (void)state;
    sf_graph *graph = load(NULL, NULL), *other = load("constant(0.9)", "constant(0.91)");
    sf_plan *plan = pin(graph, "dp", 2);
    sf_verify_report *report;
    sf_verify_options options = {.size = sizeof options, .against = values_file, .steps = 11};
    assert_int_equal(sf_verify_plan(graph, plan, &options, NULL, &report), SF_EINPUT);
    assert_null(report);
    options.steps = 1;
    assert_int_equal(sf_verify_plan(other, plan, &options, NULL, &report), SF_EUSAGE);
    options.tolerance = -1;
    assert_int_equal(sf_verify_plan(graph, plan, &options, NULL, &report), SF_EUSAGE);
    options =
        (sf_verify_options){.size = sizeof(sf_verify_options), .steps = 1, .init = "normal:1e30"};
    assert_int_equal(sf_verify_plan(graph, plan, &options, NULL, &report), SF_EMISMATCH);
    assert_null(report);
    sf_plan_free(plan);
    sf_graph_free(other);
    sf_graph_free(graph);
}

static void test_shrinks(void **state)
{
    (void)state;
    sf_graph *graph = load(NULL, NULL), *small;
    sf_plan *plan = pin(graph, "2d", 4), *small_plan;
    const char *about;
    assert_int_equal(sf_plan_shrink(plan, graph, NULL, &small, &small_plan, &about), SF_OK);
    assert_non_null(strstr(about, "parameters"));
    assert_int_equal(small->top->nnodes, graph->top->nnodes);
    int64_t before = 0, after = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        before += sf_argument_type(graph, i)->count;
        after += sf_argument_type(small, i)->count;
    }
    assert_true(after < before);
    assert_int_equal(sf_plan_check(small_plan, small, 0, NULL), SF_OK);
    sf_verify_options options = {
        .size = sizeof options, .steps = 2, .shrunk = true, .init = "normal:3"};
    sf_verify_report *report;
    assert_int_equal(sf_verify_plan(small, small_plan, &options, NULL, &report), SF_OK);
    /* Such weights make it badly conditioned: much of it is unstable, and the report has the
     * count. */
    int64_t unstable = 0;
    for (int i = 0; i < report->nresults; i++)
        unstable += report->results[i]->unstable;
    assert_true(unstable > 0);
    assert_true(report->noisy_runs > 0);
    sf_verify_free(report);
    sf_plan_free(small_plan);
    sf_graph_free(small);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

static void test_without_memory(void **state)
{
    (void)state;
    sf_graph *graph = load(NULL, NULL);
    sf_plan *plan = pin(graph, "dp", 2);
    sf_verify_options options = {
        .size = sizeof options, .against = values_file, .steps = 1, .threads = 1};
    sf_verify_report *report = NULL;
    for (long n = 0; n < 2000; n = n * 2 + 1) {
        size_t live = sf_mem_live();
        sf_mem_fail_after(n);
        sf_status status = sf_verify_plan(graph, plan, &options, NULL, &report);
        sf_mem_fail_after(-1);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        sf_verify_free(report);
        assert_int_equal(sf_mem_live(), live);
    }
    sf_plan_free(plan);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),         cmocka_unit_test(test_finds_wrong_runs),
        cmocka_unit_test(test_refuses),        cmocka_unit_test(test_shrinks),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
