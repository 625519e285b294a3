/* State of stacked layers, distributed over pipeline ranks or not: whole tensors, initial values
 * and checkpoints are the same, to the last bit, on any plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sheaf/session.h"
#include "support/plans.h"

enum { PLANS = 6, SEED = 5 };

/* NULL: unsplit. */
static const sf_plan_spec plans[PLANS] = {
    {.stages = "3", .micro_batches = 2},
    {.stages = NULL},
    {.stages = "4", .schedule = "interleaved:2", .micro_batches = 2, .recipe = "zero1", .ranks = 4},
    {.recipe = "zero3", .ranks = 2},
    {.stages = "2", .schedule = "chimera", .micro_batches = 2, .recipe = "megatron", .ranks = 4},
    {.stages = "3", .micro_batches = 2},
};

static char folder[] = "/tmp/sheaf-stacks-XXXXXX";
static sf_graph *graph;
static sf_plan *made[PLANS];
static sf_session *sessions[PLANS];

static int open_all(void **state)
{
    (void)state;
    graph = test_step("gpt-scan-micro");
    for (int p = 0; p < PLANS; p++) {
        sf_plan_spec spec = plans[p];
        spec.size = sizeof spec;
        if ((spec.stages || spec.recipe) && sf_pin_step(graph, &spec, NULL, &made[p]) != SF_OK)
            return 1;
        sf_session_options options = {.size = sizeof options, .plan = made[p], .threads = 1};
        if (sf_session_open(graph, &options, NULL, &sessions[p]) != SF_OK)
            return 1;
    }
    return !mkdtemp(folder);
}

static int close_all(void **state)
{
    (void)state;
    char command[100];
    for (int p = 0; p < PLANS; p++) {
        sf_session_close(sessions[p]);
        sf_plan_free(made[p]);
    }
    sf_graph_free(graph);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* The session's value of an argument; NULL if that is no state. */
static void *read_state(sf_session *session, int argument, size_t *bytes)
{
    sf_tensor_type type = {.size = sizeof type};
    if (sf_graph_argument_next(graph, argument) < 0)
        return NULL;
    assert_true(sf_graph_argument_type(graph, argument, &type));
    *bytes = (size_t)type.count * (size_t)type.bytes;
    void *data = malloc(*bytes);
    assert_int_equal(sf_session_read(session, argument, data, *bytes, NULL), SF_OK);
    return data;
}

static void check_same(sf_session *a, sf_session *b)
{
    for (int i = 0; i < sf_graph_arguments(graph); i++) {
        size_t bytes;
        void *ours = read_state(a, i, &bytes);
        if (!ours)
            continue;
        void *theirs = read_state(b, i, &bytes);
        assert_memory_equal(ours, theirs, bytes);
        free(ours);
        free(theirs);
    }
}

static void test_plans_deal_rows_out(void **state)
{
    (void)state;
    int partitioned = 0;
    for (int p = 0; p < PLANS; p++)
        for (int i = 0; made[p] && i < sf_graph_arguments(graph); i++) {
            char text[SF_LAYOUT_TEXT];
            partitioned += strstr(sf_plan_argument_layout(made[p], graph, i, text), ":") != NULL;
        }
    assert_true(partitioned > 40);
}

static void test_initial_values_are_the_same(void **state)
{
    (void)state;
    for (int p = 0; p < PLANS; p++) {
        assert_int_equal(sf_session_init(sessions[p], NULL, SEED, NULL), SF_OK);
        check_same(sessions[0], sessions[p]);
    }
}

/* Each loads the checkpoint of the previous one, with a step in between. */
static void test_checkpoints_go_round(void **state)
{
    (void)state;
    char save[PLANS][100];
    assert_int_equal(sf_session_init(sessions[0], NULL, SEED, NULL), SF_OK);
    for (int p = 0; p + 1 < PLANS; p++) {
        double loss;
        snprintf(save[p], sizeof save[p], "%s/%d", folder, p);
        assert_int_equal(sf_session_run(sessions[p], 1, NULL, &loss), SF_OK);
        assert_true(loss > 1 && loss < 10);
        assert_int_equal(sf_session_save(sessions[p], save[p], 0, NULL), SF_OK);
        assert_int_equal(sf_session_load(sessions[p + 1], save[p], NULL), SF_OK);
        assert_int_equal(sf_session_steps(sessions[p + 1]), p + 1);
        check_same(sessions[p], sessions[p + 1]);
    }
}

static void test_tensors_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < sf_graph_arguments(graph); i++)
        for (int p = 0; p < PLANS; p++) {
            size_t bytes;
            unsigned char *data = read_state(sessions[p], i, &bytes);
            if (!data)
                continue;
            for (size_t b = 0; b < bytes; b++)
                data[b] = (unsigned char)(b * 37 + (size_t)i);
            assert_int_equal(sf_session_write(sessions[p], i, data, bytes, NULL), SF_OK);
            unsigned char *back = read_state(sessions[p], i, &bytes);
            assert_memory_equal(data, back, bytes);
            free(data);
            free(back);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_deal_rows_out),
        cmocka_unit_test(test_initial_values_are_the_same),
        cmocka_unit_test(test_checkpoints_go_round),
        cmocka_unit_test(test_tensors_come_back),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
