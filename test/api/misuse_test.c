/* Options that make no sense: every call comes back, and says that it was misused where nothing else can be meant. */
#include "sheaf/sheaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>

static sf_graph *graph;
static sf_plan *plan;
static sf_cluster *cluster;

/* ANY: it may be good or not, as long as it comes back. */
enum { ANY = -1 };

static void check(sf_status status, int wanted, const char *what, int row)
{
    if (wanted != ANY && (int)status != wanted)
        fail_msg("%s, row %d: %s", what, row, sf_status_name(status));
}

#define COUNT(rows) ((int)(sizeof(rows) / sizeof *(rows)))

static void test_load(void **state)
{
    (void)state;
    static const struct {
        sf_load_options options;
        int wanted;
    } rows[] = {
        {{.unroll = INT64_MIN}, SF_OK},
        {{.unroll = INT64_MAX}, SF_OK},
        {{.assume_trip_count = -1}, SF_EUSAGE},
        {{.assume_trip_count = INT64_MIN}, SF_EUSAGE},
        {{.assume_trip_count = INT64_MAX}, ANY},
        {{.most_nodes = -1}, ANY},
        {{.most_nodes = 1}, SF_EUNSUPPORTED},
        {{.sidecar = ""}, ANY},
        {{.sidecar = "/"}, SF_EIO},
        {{.state = ""}, ANY},
        {{.state = "="}, ANY},
        {{.state = "a=b=c,,"}, ANY},
        {{.state = "99999999999=0"}, ANY},
        {{.state = "-1=-1"}, ANY},
        {{.size = 1}, SF_EUSAGE},
        {{.size = SIZE_MAX}, SF_EUSAGE},
    };
    sf_graph *out;
    for (int i = 0; i < COUNT(rows); i++) {
        sf_status status = sf_load("examples/gpt-micro.hlo", &rows[i].options, NULL, &out);
        check(status, rows[i].wanted, "sf_load", i);
        sf_graph_free(out);
    }
    check(sf_load("", NULL, NULL, &out), SF_EIO, "sf_load", -1);
    check(sf_load_text("", 0, "", NULL, NULL, &out), SF_EINPUT, "sf_load_text", 0);
    check(sf_load_text("module", 6, "x", NULL, NULL, &out), SF_EINPUT, "sf_load_text", 1);
}

static void test_pin(void **state)
{
    (void)state;
    static const char *const odd[] = {"", "=", "@", "*=S(0)@data", "*=S(99)@*", "*=!@", "\xff\xfe"};
    static const struct {
        sf_pin_options options;
        int wanted;
    } rows[] = {
        {{0}, SF_EUSAGE},
        {{.recipe = "dp"}, SF_EUSAGE},
        {{.recipe = "dp", .ranks = -1}, SF_EUSAGE},
        {{.recipe = "dp", .ranks = INT_MIN}, SF_EUSAGE},
        {{.recipe = "dp", .ranks = INT_MAX}, ANY},
        {{.recipe = "", .ranks = 2}, ANY},
        {{.recipe = "+", .ranks = 2}, SF_EUSAGE},
        {{.recipe = "dp+dp", .ranks = 2}, ANY},
        {{.recipe = "nobody", .ranks = 2}, SF_EUSAGE},
        {{.mesh = ""}, SF_EUSAGE},
        {{.mesh = "data"}, SF_EUSAGE},
        {{.mesh = "data=0"}, SF_EUSAGE},
        {{.mesh = "data=-2"}, SF_EUSAGE},
        {{.mesh = "data=99999999999999999999"}, SF_EUSAGE},
        {{.mesh = "data=2,data=2"}, SF_EUSAGE},
        {{.mesh = "data=65536,model=65536,more=65536"}, ANY},
        {{.mesh = "data=2", .ranks = 3}, SF_EUSAGE},
        {{.mesh = "data=2", .npins = -1}, ANY},
        {{.mesh = "data=2", .pins = odd, .npins = COUNT(odd)}, SF_EUSAGE},
        {{.mesh = "data=2", .pins = odd + 3, .npins = 1}, ANY},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        sf_plan *out;
        check(sf_pin_step(graph, &rows[i].options, NULL, &out), rows[i].wanted, "sf_pin_step", i);
        sf_plan_free(out);
    }
}

static void test_plan(void **state)
{
    (void)state;
    const struct {
        sf_plan_options options;
        int wanted;
    } rows[] = {
        {{0}, SF_EUSAGE},
        {{.cluster = cluster, .threads = -1}, SF_EUSAGE},
        {{.cluster = cluster, .threads = INT_MAX}, ANY},
        {{.cluster = cluster, .memory = -1}, SF_EUSAGE},
        {{.cluster = cluster, .memory = 1, .recipes = true}, ANY},
        {{.cluster = cluster, .level = -7, .recipes = true}, ANY},
        {{.cluster = cluster, .level = INT_MAX, .recipes = true}, ANY},
        {{.cluster = cluster, .seconds = -1, .recipes = true}, ANY},
        {{.cluster = cluster, .seconds = (double)NAN, .recipes = true}, ANY},
        {{.cluster = cluster, .margin = (double)NAN, .recipes = true}, ANY},
        {{.cluster = cluster, .margin = (double)INFINITY, .recipes = true}, ANY},
        {{.cluster = cluster, .mesh = "data=7", .recipes = true}, ANY},
        {{.cluster = cluster, .npins = -1, .recipes = true}, ANY},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        sf_plan *out;
        check(sf_plan_search(graph, &rows[i].options, NULL, &out), rows[i].wanted, "sf_plan_search",
              i);
        sf_plan_free(out);
    }
}

static void test_train(void **state)
{
    (void)state;
    const struct {
        sf_train_options options;
        int wanted;
    } rows[] = {
        {{0}, ANY},
        {{.steps = -1, .data = "synthetic"}, SF_EUSAGE},
        {{.steps = INT64_MIN, .data = "synthetic"}, SF_EUSAGE},
        {{.steps = 1, .data = ""}, ANY},
        {{.steps = 1, .data = "synthetic:0"}, ANY},
        {{.steps = 1, .data = "synthetic:-1"}, ANY},
        {{.steps = 1, .data = "synthetic:99999999999999999999"}, ANY},
        {{.steps = 1, .data = "/nowhere"}, ANY},
        {{.steps = 1, .data = "synthetic", .tokens_type = "f32"}, ANY},
        {{.steps = 1, .data = "synthetic", .order = (sf_train_order)99}, ANY},
        {{.steps = 1, .data = "synthetic", .init = "="}, ANY},
        {{.steps = 1, .data = "synthetic", .set = "=,="}, ANY},
        {{.steps = 1, .data = "synthetic", .save_every = INT64_MIN}, ANY},
        {{.steps = 1, .data = "synthetic", .engine = "abacus"}, SF_EUSAGE},
        {{.steps = 1, .data = "synthetic", .threads = -1}, SF_EUSAGE},
        {{.steps = 1, .data = "synthetic", .threads = INT_MAX}, ANY},
        {{.steps = 1, .data = "synthetic", .memory = -1}, SF_EUSAGE},
        {{.steps = 1, .data = "synthetic", .memory = 1}, SF_ENOMEM},
        {{.steps = 1, .data = "synthetic", .plan = plan, .limit = -1}, SF_EUSAGE},
        {{.steps = 1, .data = "synthetic", .plan = plan, .limit = (double)NAN}, SF_EUSAGE},
    };
    for (int i = 0; i < COUNT(rows); i++)
        check(sf_train(graph, &rows[i].options, NULL, NULL), rows[i].wanted, "sf_train", i);
    check(sf_train(graph, NULL, NULL, NULL), ANY, "sf_train", -1);
}

static void test_verify(void **state)
{
    (void)state;
    static const struct {
        sf_verify_options options;
        int wanted;
    } rows[] = {
        {{.steps = 1, .tolerance = -1}, SF_EUSAGE},
        {{.steps = 1, .tolerance = (double)NAN}, SF_EUSAGE},
        {{.steps = 1, .loss_tolerance = -1}, SF_EUSAGE},
        {{.steps = -1}, ANY},
        {{.steps = 1, .engine = ""}, SF_EUSAGE},
        {{.steps = 1, .threads = -1}, SF_EUSAGE},
        {{.steps = 1, .limit = -1}, SF_EUSAGE},
        {{.steps = 1, .limit = (double)NAN}, SF_EUSAGE},
        {{.steps = 1, .init = "nothing"}, ANY},
        {{.steps = 1, .data = ""}, ANY},
        {{.steps = 1, .against = "/nowhere"}, SF_EIO},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        sf_verify_report *out;
        check(sf_verify_plan(graph, plan, &rows[i].options, NULL, &out), rows[i].wanted,
              "sf_verify_plan", i);
        sf_verify_free(out);
        check(sf_verify(graph, &rows[i].options, NULL, &out), ANY, "sf_verify", i);
        sf_verify_free(out);
    }
}

static void test_session(void **state)
{
    (void)state;
    const struct {
        sf_session_options options;
        int wanted;
    } rows[] = {
        {{.engine = "abacus"}, SF_EUSAGE},
        {{.threads = -1}, SF_EUSAGE},
        {{.memory = -1}, SF_EUSAGE},
        {{.memory = 1}, SF_ENOMEM},
        {{.plan = plan, .limit = (double)NAN}, SF_EUSAGE},
        {{0}, SF_OK},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        sf_session *session;
        sf_status status = sf_session_open(graph, &rows[i].options, NULL, &session);
        check(status, rows[i].wanted, "sf_session_open", i);
        if (status == SF_OK) {
            char byte;
            check(sf_session_write(session, -1, &byte, 1, NULL), SF_EUSAGE, "write", i);
            check(sf_session_write(session, INT_MAX, &byte, 1, NULL), SF_EUSAGE, "write", i);
            check(sf_session_write(session, 0, &byte, 1, NULL), SF_EUSAGE, "write", i);
            check(sf_session_read(session, INT_MIN, &byte, 1, NULL), SF_EUSAGE, "read", i);
            check(sf_session_read_result(session, 1 << 30, &byte, 1, NULL), SF_EUSAGE, "read", i);
            check(sf_session_read_named(session, "", &byte, 1, NULL), SF_EUSAGE, "named", i);
            check(sf_session_run(session, -1, NULL, NULL), SF_EUSAGE, "run", i);
            check(sf_session_load(session, "/nowhere", NULL), SF_EINPUT, "load", i);
            check(sf_session_init(session, "=", 0, NULL), ANY, "init", i);
        }
        sf_session_close(session);
    }
}

static void test_queries(void **state)
{
    (void)state;
    static const int odd[] = {-1, INT_MIN, INT_MAX, 1 << 20};
    sf_tensor_type type;
    sf_box box;
    char text[SF_LAYOUT_TEXT];
    for (int i = 0; i < COUNT(odd); i++) {
        assert_null(sf_graph_argument_name(graph, odd[i]));
        assert_null(sf_graph_result_name(graph, odd[i]));
        assert_false(sf_graph_argument_type(graph, odd[i], &type));
        assert_false(sf_graph_result_type(graph, odd[i], &type));
        assert_int_equal(sf_graph_argument_next(graph, odd[i]), -1);
        sf_graph_argument_role(graph, odd[i]);
        sf_role_name((sf_role)odd[i]);
        sf_status_name((sf_status)odd[i]);
        assert_null(sf_plan_axis_name(plan, odd[i]));
        sf_plan_axis_size(plan, odd[i]);
        sf_plan_argument_layout(plan, graph, odd[i], text);
        sf_plan_boxes(plan, graph, odd[i], 0);
        sf_plan_boxes(plan, graph, 0, odd[i]);
        assert_false(sf_plan_box(plan, graph, odd[i], 0, 0, &box));
        assert_false(sf_plan_box(plan, graph, 0, odd[i], 0, &box));
        assert_false(sf_plan_box(plan, graph, 0, 0, odd[i], &box));
        assert_null(sf_recipe_name(odd[i]));
        assert_null(sf_recipe_about(odd[i]));
    }
    assert_int_equal(sf_graph_find_argument(graph, ""), -1);
    assert_int_equal(sf_graph_find_result(graph, ""), -1);
    sf_graph_free(NULL);
    sf_plan_free(NULL);
    sf_cluster_free(NULL);
    sf_session_close(NULL);
    sf_verify_free(NULL);
    sf_solution_free(NULL);
    sf_choices_free(NULL);
    sf_diag_free(NULL);
}

static void test_others(void **state)
{
    (void)state;
    static const char *const clusters[] = {
        "", "x", "1x", "0xCPU", "-1xCPU", "1x0xCPU", "99999999999xCPU", "8xNobody", "\xff", "/"};
    for (int i = 0; i < COUNT(clusters); i++) {
        sf_cluster *out;
        sf_status status = sf_cluster_open(clusters[i], NULL, &out);
        assert_int_not_equal(status, SF_OK);
        check(status, ANY, "sf_cluster_open", i);
    }
    static const sf_eval_options evals[] = {{.memory = -1},
                                            {.engine = "abacus"},
                                            {.engine = "cpu", .threads = -1},
                                            {.inputs = "/nowhere"}};
    for (int i = 0; i < COUNT(evals); i++) {
        sf_status status = sf_eval_file(graph, &evals[i], NULL);
        assert_int_not_equal(status, SF_OK);
        check(status, ANY, "sf_eval_file", i);
    }
    static const sf_show_options shows[] = {{.depth = -1}, {.depth = INT_MAX}, {.width = -1},
                                            {.width = 1},  {.file = ""},       {.size = 3}};
    for (int i = 0; i < COUNT(shows); i++) {
        sf_output nowhere = {.path = "/dev/null"};
        check(sf_show(graph, &shows[i], &nowhere, NULL), shows[i].size ? SF_EUSAGE : ANY, "sf_show",
              i);
        check(sf_plan_show(plan, graph, &shows[i], &nowhere, NULL), shows[i].size ? SF_EUSAGE : ANY,
              "sf_plan_show", i);
    }
    check(sf_plan_check(plan, graph, -1, NULL), ANY, "sf_plan_check", 0);
    check(sf_plan_check(plan, graph, 1, NULL), SF_EMISMATCH, "sf_plan_check", 1);
    check(sf_plan_explain(plan, graph, NULL, "", NULL, NULL, NULL), ANY, "sf_plan_explain", 0);
    check(sf_ranks_agree(SF_OK, (double)NAN, NULL), ANY, "sf_ranks_agree", 0);
    sf_limit_input(-1);
    sf_limit_input(0);
}

static int open_all(void **state)
{
    (void)state;
    const sf_pin_options dp = {.recipe = "dp", .ranks = 2};
    return sf_load("examples/gpt-micro.hlo", NULL, NULL, &graph) != SF_OK ||
           sf_pin_step(graph, &dp, NULL, &plan) != SF_OK ||
           sf_cluster_open("1x2xCPU", NULL, &cluster) != SF_OK;
}

static int close_all(void **state)
{
    (void)state;
    sf_cluster_free(cluster);
    sf_plan_free(plan);
    sf_graph_free(graph);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load),    cmocka_unit_test(test_pin),
        cmocka_unit_test(test_plan),    cmocka_unit_test(test_train),
        cmocka_unit_test(test_verify),  cmocka_unit_test(test_session),
        cmocka_unit_test(test_queries), cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
