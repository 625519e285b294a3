/* Queries of steps and plans, against the library's internal data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "ir/graph.h"
#include "plan/plan.h"
#include "shard/contiguous_runs.h"
#include "sheaf/sheaf.h"

#define STEP "test/data/micro/gpt-micro.stablehlo.mlir.xz"

static int load_step(void **state)
{
    return sf_load(STEP, NULL, NULL, (sf_graph **)state) != SF_OK;
}

static int free_step(void **state)
{
    sf_graph_free(*state);
    return 0;
}

static void test_arguments(void **state)
{
    const sf_graph *graph = *state;
    int params = 0, kept = 0, batch = 0;
    for (int i = 0; i < sf_graph_arguments(graph); i++) {
        sf_tensor_type type = {.size = sizeof type}, next = type;
        assert_true(sf_graph_argument_type(graph, i, &type));
        int64_t count = 1;
        for (int d = 0; d < type.rank; d++)
            count *= type.dims[d];
        assert_int_equal(count, type.count);
        assert_int_equal(sf_graph_find_argument(graph, sf_graph_argument_name(graph, i)), i);
        params += sf_graph_argument_role(graph, i) == SF_ROLE_PARAM;
        batch += sf_graph_argument_role(graph, i) == SF_ROLE_BATCH;
        int result = sf_graph_argument_next(graph, i);
        if (result < 0)
            continue;
        kept++;
        assert_true(sf_graph_result_type(graph, result, &next));
        assert_memory_equal(next.dims, type.dims, sizeof next.dims);
        assert_string_equal(next.dtype, type.dtype);
    }
    assert_true(params > 0 && batch > 0 && kept >= 2 * params);
    assert_true(sf_graph_find_argument(graph, "params/wte/embedding") >= 0);
    assert_int_equal(sf_graph_find_argument(graph, "params/nothing"), -1);
    assert_string_equal(sf_role_name(SF_ROLE_PARAM), "param");
}

static void test_results(void **state)
{
    const sf_graph *graph = *state;
    sf_tensor_type type = {.size = sizeof type};
    int loss = sf_graph_loss(graph);
    assert_true(loss >= 0 && loss < sf_graph_results(graph));
    assert_true(sf_graph_result_type(graph, loss, &type));
    assert_string_equal(type.dtype, "f32");
    assert_int_equal(type.bytes, 4);
    assert_int_equal(type.count, 1);
    assert_int_equal(sf_graph_find_result(graph, sf_graph_result_name(graph, loss)), loss);
    assert_int_equal(sf_graph_find_result(graph, ""), -1);
}

static void test_out_of_range(void **state)
{
    const sf_graph *graph = *state;
    sf_tensor_type type = {.size = sizeof type};
    const int wrong[] = {-1, 1000000};
    for (int i = 0; i < 2; i++) {
        assert_null(sf_graph_argument_name(graph, wrong[i]));
        assert_null(sf_graph_result_name(graph, wrong[i]));
        assert_false(sf_graph_argument_type(graph, wrong[i], &type));
        assert_false(sf_graph_result_type(graph, wrong[i], &type));
        assert_int_equal(sf_graph_argument_next(graph, wrong[i]), -1);
    }
}

static bool comes_before(const char **paths, int count, const char *path, size_t length)
{
    for (int i = 0; i < count; i++)
        if (strlen(paths[i]) == length && memcmp(paths[i], path, length) == 0)
            return true;
    return false;
}

static void test_scopes(void **state)
{
    const char *paths[1000];
    int count = sf_graph_scopes(*state, 1000, paths);
    assert_true(count > 0 && count <= 1000);
    assert_int_equal(sf_graph_scopes(*state, 0, NULL), count);
    for (int i = 0; i < count; i++) {
        const char *slash = strrchr(paths[i], '/');
        assert_true(paths[i][0] != 0);
        assert_false(comes_before(paths, i, paths[i], strlen(paths[i])));
        if (slash)
            assert_true(comes_before(paths, i, paths[i], (size_t)(slash - paths[i])));
    }
}

/* Paints the boxes of each rank: they are its runs. */
static void check_boxes(const sf_plan *plan, const sf_graph *graph, int argument, int rank)
{
    sf_tensor_type type = {.size = sizeof type};
    assert_true(sf_graph_argument_type(graph, argument, &type));
    char *painted = calloc(1, (size_t)type.count + 1),
         *expected = calloc(1, (size_t)type.count + 1);
    sf_runs runs = sf_runs_of(&plan->arguments[argument], &plan->mesh, rank,
                              sf_argument_type(graph, (uint32_t)argument));
    while (sf_runs_next(&runs))
        memset(expected + runs.global, 1, (size_t)runs.count);
    int64_t boxes = sf_plan_boxes(plan, graph, argument, rank);
    for (int64_t b = 0; b < boxes; b++) {
        sf_box box = {.size = sizeof box};
        assert_true(sf_plan_box(plan, graph, argument, rank, b, &box));
        assert_int_equal(box.rank, type.rank);
        int64_t count = 1;
        for (int d = 0; d < box.rank; d++)
            count *= box.extent[d];
        for (int64_t e = 0; e < count; e++) {
            int64_t rest = e, at = 0, stride = 1;
            for (int d = box.rank - 1; d >= 0; d--) {
                at += (box.offset[d] + rest % box.extent[d]) * stride;
                rest /= box.extent[d];
                stride *= type.dims[d];
            }
            painted[at]++;
        }
    }
    assert_memory_equal(painted, expected, (size_t)type.count);
    free(painted);
    free(expected);
}

static void test_plan(void **state)
{
    const sf_graph *graph = *state;
    static const char *const pins[] = {"params/*/kernel=S(0)@a", "opt/*/kernel=S(0)@a",
                                       "*/wte/embedding=S(1)@a"};
    sf_plan_spec options = {.size = sizeof options, .mesh = "a=2,b=2", .pins = pins, .npins = 3};
    sf_plan *plan;
    sf_box box = {.size = sizeof box};
    char text[SF_LAYOUT_TEXT];
    assert_int_equal(sf_pin_step(graph, &options, NULL, &plan), SF_OK);
    assert_int_equal(sf_plan_axes(plan), 2);
    assert_string_equal(sf_plan_axis_name(plan, 1), "b");
    assert_int_equal(sf_plan_axis_size(plan, 0), 2);
    assert_null(sf_plan_axis_name(plan, 2));
    assert_int_equal(sf_plan_axis_size(plan, -1), 0);
    int embedding = sf_graph_find_argument(graph, "params/wte/embedding");
    assert_string_equal(sf_plan_argument_layout(plan, graph, embedding, text), "[S(1), R]");
    assert_null(sf_plan_argument_layout(plan, graph, -1, text));
    /* A strided split, as a plan may have it where a factor of a dimension is split. */
    int64_t width = sf_argument_type(graph, (uint32_t)embedding)->dims[1];
    plan->arguments[embedding].axes[0].period = width / 4;
    plan->arguments[embedding].axes[1] = (sf_share){.kind = SF_SPLIT, .dim = 1, .period = width};
    assert_int_equal(sf_plan_boxes(plan, graph, embedding, 0), 2);
    for (int rank = 0; rank < 4; rank++)
        for (int i = 0; i < sf_graph_arguments(graph); i++)
            check_boxes(plan, graph, i, rank);
    assert_false(sf_plan_box(plan, graph, embedding, 0, 2, &box));
    assert_int_equal(sf_plan_boxes(plan, graph, embedding, 4), 0);
    assert_int_equal(sf_plan_boxes(plan, graph, -1, 0), 0);
    sf_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),    cmocka_unit_test(test_results),
        cmocka_unit_test(test_out_of_range), cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, load_step, free_step);
}
