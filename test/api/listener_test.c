/* Listeners that stop: calls end soon, with the results so far. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sheaf/sheaf.h"

#define STEP "test/data/micro/mlp-micro"

struct count {
    int calls, most; /* after so many it wants to stop */
    sf_event_kind kind;
};

static bool count_event(void *context, const sf_event *event)
{
    struct count *count = context;
    assert_int_equal(event->size, sizeof *event);
    assert_int_equal(event->kind, count->kind);
    assert_int_equal(event->rank, 0);
    count->calls++;
    if (event->kind == SF_EVENT_STEP)
        assert_int_equal(event->step, count->calls);
    else
        assert_true(event->text[0] != 0);
    return count->calls < count->most;
}

static int load_step(void **state)
{
    return sf_load(STEP ".stablehlo.mlir.xz", NULL, NULL, (sf_graph **)state) != SF_OK;
}

static int free_step(void **state)
{
    sf_graph_free(*state);
    return 0;
}

static void test_verify(void **state)
{
    struct count count = {.most = 2, .kind = SF_EVENT_STEP};
    sf_verify_options options = {.size = sizeof options,
                                 .against = STEP ".io.safetensors",
                                 .listener = count_event,
                                 .context = &count};
    sf_verify_report *report;
    assert_int_equal(sf_verify(*state, &options, NULL, &report), SF_OK);
    assert_int_equal(report->nlosses, 2);
    assert_int_equal(count.calls, 2);
    assert_true(report->passed);
    sf_verify_free(report);
}

static void test_verify_plan(void **state)
{
    struct count count = {.most = 2, .kind = SF_EVENT_STEP};
    sf_plan_spec pins = {.size = sizeof pins, .recipe = "dp", .ranks = 2};
    sf_verify_options options = {
        .size = sizeof options, .steps = 5, .listener = count_event, .context = &count};
    sf_verify_report *report;
    sf_plan *plan;
    assert_int_equal(sf_pin_step(*state, &pins, NULL, &plan), SF_OK);
    assert_int_equal(sf_verify_plan(*state, plan, &options, NULL, &report), SF_OK);
    assert_int_equal(report->nlosses, 2);
    assert_int_equal(count.calls, 2);
    assert_true(report->passed);
    sf_verify_free(report);
    sf_plan_free(plan);
}

/* It ends with a plan that fits, after fewer stages. */
static void test_search(void **state)
{
    struct count patient = {.most = 1 << 30, .kind = SF_EVENT_STAGE}, hasty = patient;
    sf_plan_options options = {.size = sizeof options, .threads = 1, .listener = count_event};
    sf_cluster *cluster;
    sf_plan *plan;
    assert_int_equal(sf_cluster_open("1x4xV100", NULL, &cluster), SF_OK);
    options.cluster = cluster;
    options.context = &patient;
    assert_int_equal(sf_plan_search(*state, NULL, &options, NULL, &plan), SF_OK);
    sf_plan_free(plan);
    hasty.most = 1;
    options.context = &hasty;
    assert_int_equal(sf_plan_search(*state, NULL, &options, NULL, &plan), SF_OK);
    assert_int_equal(sf_plan_check(plan, *state, 0, NULL), SF_OK);
    assert_true(hasty.calls < patient.calls);
    sf_plan_free(plan);
    sf_cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_verify_plan),
        cmocka_unit_test(test_search),
    };
    return cmocka_run_group_tests(tests, load_step, free_step);
}
