/* Shards of a session, and a plan by the names of the step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sheaf/sheaf.h"

#define STEP "examples/gpt-micro.stablehlo.mlir"

static sf_graph *graph;

static int set_up(void **state)
{
    (void)state;
    return sf_load(STEP, NULL, NULL, &graph) != SF_OK;
}

static int tear_down(void **state)
{
    (void)state;
    sf_graph_free(graph);
    return 0;
}

/* Copies the boxes of a rank between a whole tensor and its shard. */
static void copy_boxes(const sf_plan *plan, int argument, int rank, const sf_tensor_type *type,
                       char *whole, char *shard, bool cut)
{
    int64_t dims[SF_TENSOR_DIMS], boxes = sf_plan_boxes(plan, graph, argument, rank);
    /* How long the shard is along each dimension: the indices of its boxes, counted once. */
    for (int d = 0; d < type->rank; d++) {
        bool seen[4096] = {false};
        dims[d] = 0;
        for (int64_t b = 0; b < boxes; b++) {
            sf_box box = {.size = sizeof box};
            assert_true(sf_plan_box(plan, graph, argument, rank, b, &box));
            assert_true(box.offset[d] < 4096);
            dims[d] += seen[box.offset[d]] ? 0 : box.extent[d];
            seen[box.offset[d]] = true;
        }
    }
    int64_t runs[SF_TENSOR_DIMS];
    for (int64_t b = 0; b < boxes; b++) {
        sf_box box = {.size = sizeof box};
        int64_t count = 1, number = b;
        assert_true(sf_plan_box(plan, graph, argument, rank, b, &box));
        for (int d = type->rank - 1; d >= 0; d--) {
            runs[d] = number % (dims[d] / box.extent[d]);
            number /= dims[d] / box.extent[d];
            count *= box.extent[d];
        }
        for (int64_t e = 0; e < count; e++) {
            int64_t rest = e, from = 0, to = 0, global = 1, local = 1;
            for (int d = type->rank - 1; d >= 0; d--) {
                int64_t at = rest % box.extent[d];
                rest /= box.extent[d];
                from += (box.offset[d] + at) * global;
                to += (runs[d] * box.extent[d] + at) * local;
                global *= type->dims[d];
                local *= dims[d];
            }
            char *a = whole + from * type->bytes, *s = shard + to * type->bytes;
            memcpy(cut ? s : a, cut ? a : s, (size_t)type->bytes);
        }
    }
}

static void check_argument(sf_session *session, const sf_plan *plan, int argument)
{
    sf_tensor_type type = {.size = sizeof type};
    assert_true(sf_graph_argument_type(graph, argument, &type));
    size_t bytes = (size_t)type.count * (size_t)type.bytes;
    char *whole = malloc(bytes + 1), *back = calloc(1, bytes + 1),
         *recomputed = calloc(1, bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        whole[i] = (char)(i * 7 + (size_t)argument);
    for (int r = 0; r < sf_plan_ranks(plan); r++) {
        int rank = sf_session_rank(session, r);
        int64_t size = sf_session_shard_bytes(session, argument, rank);
        char *shard = malloc((size_t)size + 1);
        copy_boxes(plan, argument, rank, &type, whole, shard, true);
        assert_int_equal(sf_session_write_shard(session, argument, rank, shard, (size_t)size, NULL),
                         SF_OK);
        memset(shard, 0, (size_t)size);
        assert_int_equal(sf_session_read_shard(session, argument, rank, shard, (size_t)size, NULL),
                         SF_OK);
        copy_boxes(plan, argument, rank, &type, recomputed, shard, false);
        assert_int_equal(
            sf_session_read_shard(session, argument, rank, shard, (size_t)size + 1, NULL),
            SF_EUSAGE);
        free(shard);
    }
    assert_int_equal(sf_session_read(session, argument, back, bytes, NULL), SF_OK);
    assert_memory_equal(back, whole, bytes);
    assert_memory_equal(recomputed, whole, bytes);
    free(whole);
    free(back);
    free(recomputed);
}

/* Written as shards, read as whole tensors, which are put together by the layouts themselves. */
static void test_shards(void **state)
{
    static const char *const recipes[] = {"megatron", "zero3", "2d+zero1"};
    static const int ranks[] = {2, 4, 4};
    (void)state;
    for (int i = 0; i < 3; i++) {
        sf_plan_spec pin = {.size = sizeof pin, .recipe = recipes[i], .ranks = ranks[i]};
        sf_plan *plan;
        sf_session *session;
        assert_int_equal(sf_pin_step(graph, &pin, NULL, &plan), SF_OK);
        sf_session_options options = {.size = sizeof options, .plan = plan, .threads = 1};
        assert_int_equal(sf_session_open(graph, &options, NULL, &session), SF_OK);
        for (int a = 0; a < sf_graph_arguments(graph); a++)
            check_argument(session, plan, a);
        assert_int_equal(sf_session_rank(session, ranks[i]), -1);
        assert_int_equal(sf_session_shard_bytes(session, 0, ranks[i]), -1);
        assert_int_equal(sf_session_shard_bytes(session, -1, 0), -1);
        assert_int_equal(sf_session_write_shard(session, 0, -1, "", 1, NULL), SF_EUSAGE);
        sf_session_close(session);
        sf_plan_free(plan);
    }
}

/* Without a plan the one shard is the tensor. */
static void test_unsplit(void **state)
{
    sf_session *session;
    sf_tensor_type type = {.size = sizeof type};
    (void)state;
    assert_int_equal(sf_session_open(graph, NULL, NULL, &session), SF_OK);
    assert_true(sf_graph_argument_type(graph, 0, &type));
    assert_int_equal(sf_session_rank(session, 0), 0);
    assert_int_equal(sf_session_rank(session, 1), -1);
    assert_int_equal(sf_session_shard_bytes(session, 0, 0), type.count * type.bytes);
    sf_session_close(session);
}

static bool keep_text(void *context, const char *text, size_t length)
{
    char **all = context;
    size_t had = *all ? strlen(*all) : 0;
    *all = realloc(*all, had + length + 1);
    memcpy(*all + had, text, length);
    (*all)[had + length] = 0;
    return true;
}

static void test_names(void **state)
{
    sf_plan_spec pin = {.size = sizeof pin, .recipe = "megatron", .ranks = 2};
    sf_plan *plan;
    int all, *tensors, splits = 0;
    (void)state;
    assert_int_equal(sf_pin_step(graph, &pin, NULL, &plan), SF_OK);
    all = sf_plan_tensors(plan, graph, NULL, 0, NULL);
    assert_true(all > sf_graph_arguments(graph));
    tensors = malloc((size_t)all * sizeof *tensors);
    int ups = sf_plan_tensors(plan, graph, "layer_0/mlp/up/dot_general", all, tensors);
    assert_true(ups > 0 && ups < all);
    for (int i = 0; i < ups; i++) {
        sf_plan_tensor_view view = {.size = sizeof view};
        assert_true(sf_plan_tensor(plan, graph, tensors[i], &view));
        assert_string_equal(view.name, "layer_0/mlp/up/dot_general");
        splits += strcmp(view.phase, "forward") == 0 && strstr(view.layout, "S(") != NULL;
    }
    assert_true(splits > 0);
    assert_int_equal(sf_plan_tensors(plan, graph, "/params/layer_0/mlp/up/kernel", all, tensors),
                     1);
    int kernel = sf_graph_find_argument(graph, "params/layer_0/mlp/up/kernel");
    char text[SF_LAYOUT_TEXT];
    sf_plan_tensor_view view = {.size = sizeof view};
    assert_true(sf_plan_tensor(plan, graph, tensors[0], &view));
    assert_string_equal(view.layout, sf_plan_argument_layout(plan, graph, kernel, text));
    assert_int_equal(sf_plan_tensors(plan, graph, "nothing", all, tensors), 0);
    assert_false(sf_plan_tensor(plan, graph, -1, &view));
    assert_false(sf_plan_tensor(plan, graph, 1 << 30, &view));
    free(tensors);
    sf_plan_free(plan);
}

static void test_program(void **state)
{
    sf_plan_spec pin = {.size = sizeof pin, .recipe = "dp", .ranks = 2};
    char *text = NULL;
    sf_output output = {.size = sizeof output, .write = keep_text, .context = &text};
    sf_plan *plan;
    (void)state;
    assert_int_equal(sf_pin_step(graph, &pin, NULL, &plan), SF_OK);
    assert_int_equal(sf_plan_show_program(plan, graph, 1, &output, NULL), SF_OK);
    assert_non_null(strstr(text, "all_reduce"));
    assert_int_equal(sf_plan_show_program(plan, graph, 2, &output, NULL), SF_EUSAGE);
    assert_int_equal(sf_plan_show_program(plan, graph, -1, &output, NULL), SF_EUSAGE);
    free(text);
    sf_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shards),
                                       cmocka_unit_test(test_unsplit), cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_program)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
