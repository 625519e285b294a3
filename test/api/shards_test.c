/* Shards of a session, and a plan by the names of the step.
 *
 *     shards_test               ranks as threads
 *     shards_test mpi RANKS     as one rank of MPI
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sheaf/sheaf.h"
#include "support/sanitized.h"

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

/* An argument or a result, as the plan lays it out. */
typedef struct tensor {
    const sf_plan *plan;
    bool is_result;
    int index;
    sf_tensor_type type;
} tensor;

static tensor tensor_of(const sf_plan *plan, bool is_result, int index)
{
    tensor t = {plan, is_result, index, {.size = sizeof t.type}};
    assert_true(is_result ? sf_graph_result_type(graph, index, &t.type)
                          : sf_graph_argument_type(graph, index, &t.type));
    return t;
}

static int64_t boxes_of(const tensor *t, int rank)
{
    return t->is_result ? sf_plan_result_boxes(t->plan, graph, t->index, rank)
                        : sf_plan_boxes(t->plan, graph, t->index, rank);
}

static sf_box box_of(const tensor *t, int rank, int64_t number)
{
    sf_box box = {.size = sizeof box};
    assert_true(t->is_result ? sf_plan_result_box(t->plan, graph, t->index, rank, number, &box)
                             : sf_plan_box(t->plan, graph, t->index, rank, number, &box));
    return box;
}

/* Copies the boxes of a rank from a whole tensor to its shard. */
static void cut(const tensor *t, int rank, const char *whole, char *shard)
{
    const sf_tensor_type *type = &t->type;
    int64_t dims[SF_TENSOR_DIMS], boxes = boxes_of(t, rank);
    /* How long the shard is along each dimension: the indices of its boxes, counted once. */
    for (int d = 0; d < type->rank; d++) {
        bool seen[4096] = {false};
        dims[d] = 0;
        for (int64_t b = 0; b < boxes; b++) {
            sf_box box = box_of(t, rank, b);
            assert_true(box.offset[d] < 4096);
            dims[d] += seen[box.offset[d]] ? 0 : box.extent[d];
            seen[box.offset[d]] = true;
        }
    }
    int64_t runs[SF_TENSOR_DIMS];
    for (int64_t b = 0; b < boxes; b++) {
        sf_box box = box_of(t, rank, b);
        int64_t count = 1, number = b;
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
            memcpy(shard + to * type->bytes, whole + from * type->bytes, (size_t)type->bytes);
        }
    }
}

/* Each rank of this process writes its shard, and reads it; then the tensor is whole. */
static void check_argument(sf_session *session, const sf_plan *plan, int argument)
{
    tensor t = tensor_of(plan, false, argument);
    size_t bytes = (size_t)t.type.count * (size_t)t.type.bytes;
    char *whole = malloc(bytes + 1), *back = calloc(1, bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        whole[i] = (char)(i * 7 + (size_t)argument);
    for (int i = 0, rank; (rank = sf_session_rank(session, i)) >= 0; i++) {
        int64_t size = sf_session_shard_bytes(session, argument, rank);
        char *shard = malloc((size_t)size + 1), *read = calloc(1, (size_t)size + 1);
        cut(&t, rank, whole, shard);
        assert_int_equal(sf_session_write_shard(session, argument, rank, shard, (size_t)size, NULL),
                         SF_OK);
        assert_int_equal(sf_session_read_shard(session, argument, rank, read, (size_t)size, NULL),
                         SF_OK);
        assert_memory_equal(read, shard, (size_t)size);
        assert_int_equal(
            sf_session_read_shard(session, argument, rank, read, (size_t)size + 1, NULL),
            SF_EUSAGE);
        free(shard);
        free(read);
    }
    assert_int_equal(sf_session_read(session, argument, back, bytes, NULL), SF_OK);
    assert_memory_equal(back, whole, bytes);
    free(whole);
    free(back);
}

/* The shards of a result are those of the whole; returns whether a rank has less than the whole. */
static bool check_result(sf_session *session, const sf_plan *plan, int result)
{
    tensor t = tensor_of(plan, true, result);
    size_t bytes = (size_t)t.type.count * (size_t)t.type.bytes;
    bool is_split = false;
    char *whole = malloc(bytes + 1), layout[SF_LAYOUT_TEXT];
    assert_non_null(sf_plan_result_layout(plan, graph, result, layout));
    assert_int_equal(sf_session_read_result(session, result, whole, bytes, NULL), SF_OK);
    for (int i = 0, rank; (rank = sf_session_rank(session, i)) >= 0; i++) {
        int64_t size = sf_session_result_shard_bytes(session, result, rank);
        char *shard = malloc((size_t)size + 1), *read = calloc(1, (size_t)size + 1);
        is_split = is_split || size < (int64_t)bytes;
        cut(&t, rank, whole, shard);
        assert_int_equal(
            sf_session_read_result_shard(session, result, rank, read, (size_t)size, NULL), SF_OK);
        assert_memory_equal(read, shard, (size_t)size);
        assert_int_equal(
            sf_session_read_result_shard(session, result, rank, read, (size_t)size + 1, NULL),
            SF_EUSAGE);
        free(shard);
        free(read);
    }
    free(whole);
    return is_split;
}

static void check_refusals(sf_session *session, int ranks)
{
    char byte[1] = {0};
    int own = sf_session_rank(session, 0);
    assert_int_equal(sf_session_shard_bytes(session, 0, ranks), -1);
    assert_int_equal(sf_session_shard_bytes(session, -1, own), -1);
    assert_int_equal(sf_session_result_shard_bytes(session, 0, ranks), -1);
    assert_int_equal(sf_session_result_shard_bytes(session, sf_graph_results(graph), own), -1);
    assert_int_equal(sf_session_write_shard(session, 0, -1, byte, 1, NULL), SF_EUSAGE);
    assert_int_equal(sf_session_read_result_shard(session, 0, ranks, byte, 1, NULL), SF_EUSAGE);
    assert_int_equal(sf_session_read_result_shard(session, -1, own, byte, 1, NULL), SF_EUSAGE);
}

/* Shards against whole tensors, which are put together by the layouts themselves. */
static void check_plan(const sf_plan_spec *spec)
{
    sf_plan *plan;
    sf_session *session;
    sf_diag *diag = sf_diag_new();
    double loss;
    int splits = 0;
    if (sf_pin_step(graph, spec, diag, &plan) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_session_options options = {.size = sizeof options, .plan = plan, .threads = 1};
    assert_int_equal(sf_session_open(graph, &options, diag, &session), SF_OK);
    int64_t size = sf_session_result_shard_bytes(session, 0, sf_session_rank(session, 0));
    char *early = malloc((size_t)size + 1);
    assert_int_equal(sf_session_read_result_shard(session, 0, sf_session_rank(session, 0), early,
                                                  (size_t)size, NULL),
                     SF_EUSAGE);
    free(early);
    for (int a = 0; a < sf_graph_arguments(graph); a++)
        check_argument(session, plan, a);
    assert_int_equal(sf_session_init(session, NULL, 1, diag), SF_OK);
    assert_int_equal(sf_session_run(session, 1, diag, &loss), SF_OK);
    for (int r = 0; r < sf_graph_results(graph); r++)
        splits += check_result(session, plan, r);
    assert_true(splits > 0);
    check_refusals(session, sf_plan_ranks(plan));
    sf_session_close(session);
    sf_plan_free(plan);
    sf_diag_free(diag);
}

static const sf_plan_spec plans[] = {
    {.size = sizeof *plans, .ranks = 2, .recipe = "megatron"},
    {.size = sizeof *plans, .ranks = 2, .recipe = "zero3"},
    {.size = sizeof *plans, .mesh = "pipe=2", .stages = "2", .micro_batches = 2},
    {.size = sizeof *plans, .ranks = 4, .recipe = "2d+zero1"},
    {.size = sizeof *plans,
     .mesh = "pipe=2,data=2",
     .recipe = "zero1",
     .stages = "2",
     .micro_batches = 2},
};

/* Those of so many ranks; 0: all. */
static void check_plans(int ranks)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (ranks == 0 || (i < 3 ? 2 : 4) == ranks)
            check_plan(&plans[i]);
}

static void test_shards(void **state)
{
    (void)state;
    check_plans(0);
}

static int mpi_ranks;

static void test_mpi(void **state)
{
    (void)state;
    check_plans(mpi_ranks);
}

/* The thread that starts ranks runs out of memory at any allocation: the session says so, and can be closed. */
static void test_no_memory(void **state)
{
    sf_plan_spec spec = {.size = sizeof spec, .recipe = "dp", .ranks = 4};
    sf_plan *plan;
    long n = 0;
    sf_status status = SF_ENOMEM;
    (void)state;
    assert_int_equal(sf_pin_step(graph, &spec, NULL, &plan), SF_OK);
    sf_session_options options = {.size = sizeof options, .plan = plan, .threads = 1};
    for (; status != SF_OK; n++) {
        sf_session *session;
        sf_diag *diag = sf_diag_new();
        sf_mem_fail_after(n);
        status = sf_session_open(graph, &options, diag, &session);
        sf_mem_fail_after(-1);
        if (status != SF_OK) {
            assert_int_equal(status, SF_ENOMEM);
            assert_true(sf_diag_count(diag) > 0);
            assert_null(session);
        }
        sf_session_close(session);
        sf_diag_free(diag);
    }
    assert_true(n > 5);
    n = 0;
    for (status = SF_ENOMEM; status != SF_OK; n++) {
        sf_session *session;
        double loss;
        assert_int_equal(sf_session_open(graph, &options, NULL, &session), SF_OK);
        sf_mem_fail_after(n);
        status = sf_session_run(session, 1, NULL, &loss);
        sf_mem_fail_after(-1);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        sf_session_close(session);
    }
    assert_true(n > 3);
    sf_plan_free(plan);
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
    assert_true(sf_graph_result_type(graph, 1, &type));
    assert_int_equal(sf_session_result_shard_bytes(session, 1, 0), type.count * type.bytes);
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

/* One text for all ranks: the rank is an argument, and picks its rows of what differs. Stages have no common text. */
static void test_stablehlo_of_ranks(void **state)
{
    sf_plan_spec pin = {.size = sizeof pin, .recipe = "2d+zero1", .ranks = 4};
    char *text = NULL;
    sf_output output = {.size = sizeof output, .write = keep_text, .context = &text};
    sf_diag *diag = sf_diag_new();
    sf_plan *plan;
    (void)state;
    assert_int_equal(sf_pin_step(graph, &pin, NULL, &plan), SF_OK);
    assert_int_equal(sf_plan_save_stablehlo(plan, graph, &output, NULL), SF_OK);
    assert_non_null(strstr(text, "@main(%rank: tensor<i32>, %arg0"));
    assert_non_null(strstr(text, "\"stablehlo.all_reduce\"("));
    assert_non_null(strstr(text, "\"stablehlo.reduce_scatter\"("));
    assert_non_null(strstr(text, "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"));
    assert_non_null(strstr(text, "replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"));
    assert_non_null(strstr(text, ", %rank"));
    assert_null(strstr(text, "\"sheaf."));
    free(text);
    sf_plan_free(plan);
    pin = (sf_plan_spec){
        .size = sizeof pin, .recipe = "dp", .ranks = 4, .stages = "2", .micro_batches = 2};
    assert_int_equal(sf_pin_step(graph, &pin, NULL, &plan), SF_OK);
    assert_int_equal(sf_plan_save_stablehlo(plan, graph, &output, diag), SF_EUNSUPPORTED);
    assert_non_null(strstr(sf_diag_text(diag, 0), "the programs of ranks 0 and"));
    sf_diag_free(diag);
    sf_plan_free(plan);
}

int main(void)
{
    if (test_argv[0] && strcmp(test_argv[0], "mpi") == 0) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_mpi)};
        mpi_ranks = atoi(test_argv[1]);
        return cmocka_run_group_tests(tests, set_up, tear_down);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards),  cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_unsplit), cmocka_unit_test(test_names),
        cmocka_unit_test(test_program), cmocka_unit_test(test_stablehlo_of_ranks)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
