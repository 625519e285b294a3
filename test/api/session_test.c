/* Sessions: the same numbers as training, whole tensors in and out, checkpoints, and errors. */
#include "sheaf/session.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/verify/replay.h"
#include "base/mem.h"
#include "sheaf/train.h"

#define STEP "test/data/micro/mlp-micro"
#define VALUES STEP ".io.safetensors"
enum { STEPS = 3 };

static char folder[] = "/tmp/sheaf-session-XXXXXX";
static sf_graph *graph;

static int make_folder(void **state)
{
    (void)state;
    return !mkdtemp(folder) || sf_load(STEP ".stablehlo.mlir.xz", NULL, NULL, &graph) != SF_OK;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    sf_graph_free(graph);
    return system(command);
}

static sf_plan *make_plan(const char *recipe, int ranks)
{
    sf_plan *plan = NULL;
    sf_plan_spec options = {.size = sizeof options, .recipe = recipe, .ranks = ranks};
    if (recipe)
        assert_int_equal(sf_pin_step(graph, &options, NULL, &plan), SF_OK);
    return plan;
}

static sf_session *open_session(const sf_session_options *options)
{
    sf_session *session;
    sf_diag *diag = sf_diag_new();
    sf_status status = sf_session_open(graph, options, diag, &session);
    if (status != SF_OK)
        print_message("%s\n", sf_diag_text(diag, 0));
    assert_int_equal(status, SF_OK);
    sf_diag_free(diag);
    return session;
}

/* The arguments of a step: all of the first, then those that are no state. */
static void write_arguments(sf_session *session, sf_replay *replay, int step)
{
    bool changed;
    assert_int_equal(sf_replay_batch(replay, step, NULL, &changed), SF_OK);
    for (int i = 0; i < sf_graph_arguments(graph); i++)
        if (step == 0 || sf_graph_argument_next(graph, i) < 0) {
            const sf_tensor *from = &replay->arguments[i];
            assert_int_equal(
                sf_session_write(session, i, from->data, (size_t)sf_type_bytes(from->type), NULL),
                SF_OK);
        }
}

static void run_replay(sf_session *session, double losses[STEPS])
{
    sf_arena arena = {0};
    sf_replay replay = {0};
    assert_int_equal(sf_replay_open(graph, VALUES, &arena, NULL, &replay), SF_OK);
    sf_replay_find(&replay, &arena);
    for (int step = 0; step < STEPS; step++) {
        write_arguments(session, &replay, step);
        assert_int_equal(sf_session_run(session, 1, NULL, &losses[step]), SF_OK);
        assert_int_equal(sf_session_steps(session), step + 1);
    }
    sf_replay_close(&replay);
    sf_arena_free(&arena);
}

static size_t bytes_of(int argument)
{
    sf_tensor_type type = {.size = sizeof type};
    assert_true(sf_graph_argument_type(graph, argument, &type));
    return (size_t)type.count * (size_t)type.bytes;
}

static void *read_argument(sf_session *session, int argument)
{
    void *data = malloc(bytes_of(argument));
    assert_int_equal(sf_session_read(session, argument, data, bytes_of(argument), NULL), SF_OK);
    return data;
}

static void check_same_state(sf_session *a, sf_session *b)
{
    for (int i = 0; i < sf_graph_arguments(graph); i++) {
        if (sf_graph_argument_next(graph, i) < 0)
            continue;
        void *ours = read_argument(a, i), *theirs = read_argument(b, i);
        assert_memory_equal(ours, theirs, bytes_of(i));
        free(ours);
        free(theirs);
    }
}

static bool keep_loss(void *context, const sf_event *event)
{
    if (event->kind == SF_EVENT_STEP)
        ((double *)context)[event->step - 1] = event->loss;
    return true;
}

/* By every way to split: the losses and the state are those of training, to the last bit. */
static void test_as_training(void **state)
{
    (void)state;
    static const struct {
        const char *recipe, *engine;
        int ranks;
    } cases[] = {{NULL, "cpu", 1},    {NULL, "oracle", 1},    {"dp", "cpu", 2},
                 {"zero3", "cpu", 4}, {"megatron", "cpu", 2}, {"dp", "oracle", 2}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        sf_plan *plan = make_plan(cases[c].recipe, cases[c].ranks);
        double trained[STEPS], ours[STEPS];
        char save[100];
        snprintf(save, sizeof save, "%s/train-%zu", folder, c);
        sf_train_options train = {.size = sizeof train,
                                  .steps = STEPS,
                                  .data = VALUES,
                                  .init = VALUES,
                                  .save = save,
                                  .engine = cases[c].engine,
                                  .threads = 2,
                                  .plan = plan,
                                  .listener = keep_loss,
                                  .context = trained};
        assert_int_equal(sf_train(graph, &train, NULL, NULL), SF_OK);
        sf_session_options options = {
            .size = sizeof options, .plan = plan, .engine = cases[c].engine, .threads = 2};
        sf_session *session = open_session(&options), *loaded = open_session(NULL);
        run_replay(session, ours);
        assert_memory_equal(ours, trained, sizeof ours);
        assert_int_equal(sf_session_load(loaded, save, NULL), SF_OK);
        assert_int_equal(sf_session_steps(loaded), STEPS);
        check_same_state(session, loaded);
        sf_session_close(session);
        sf_session_close(loaded);
        sf_plan_free(plan);
    }
}

/* A written tensor reads back, and so do results that became arguments. */
static void test_tensors(void **state)
{
    (void)state;
    sf_plan *plan = make_plan("zero3", 4);
    sf_session_options options = {.size = sizeof options, .plan = plan, .threads = 1};
    sf_session *session = open_session(&options);
    assert_int_equal(sf_session_init(session, "normal:0.1", 7, NULL), SF_OK);
    for (int i = 0; i < sf_graph_arguments(graph); i++) {
        size_t bytes = bytes_of(i);
        unsigned char *data = malloc(bytes);
        for (size_t b = 0; b < bytes; b++)
            data[b] = (unsigned char)(b % 251);
        assert_int_equal(
            sf_session_write_named(session, sf_graph_argument_name(graph, i), data, bytes, NULL),
            SF_OK);
        unsigned char *recomputed = read_argument(session, i);
        assert_memory_equal(recomputed, data, bytes);
        free(recomputed);
        free(data);
    }
    double losses[STEPS], loss;
    run_replay(session, losses);
    int result = sf_graph_loss(graph);
    float number;
    assert_int_equal(sf_session_read_result(session, result, &number, sizeof number, NULL), SF_OK);
    assert_true((double)number == losses[STEPS - 1]);
    for (int i = 0; i < sf_graph_arguments(graph); i++) {
        int next = sf_graph_argument_next(graph, i);
        if (next < 0)
            continue;
        void *data = malloc(bytes_of(i)), *argument = read_argument(session, i);
        assert_int_equal(sf_session_read_result(session, next, data, bytes_of(i), NULL), SF_OK);
        assert_memory_equal(data, argument, bytes_of(i));
        free(data);
        free(argument);
    }
    assert_int_equal(sf_session_run(session, 0, NULL, &loss), SF_OK);
    assert_true(loss == losses[STEPS - 1]);
    sf_session_close(session);
    sf_plan_free(plan);
}

/* Saved by four ranks, loaded by one and by two; directories as in training. */
static void test_checkpoints(void **state)
{
    (void)state;
    sf_plan *four = make_plan("zero3", 4), *two = make_plan("dp", 2);
    sf_session *a = open_session(&SF_OPTIONS(sf_session_options, .plan = four)),
               *b = open_session(NULL),
               *c = open_session(&SF_OPTIONS(sf_session_options, .plan = two));
    double losses[STEPS];
    char save[100], slashed[110], other[100];
    snprintf(save, sizeof save, "%s/saved", folder);
    snprintf(slashed, sizeof slashed, "%s//", save);
    snprintf(other, sizeof other, "%s/other", folder);
    assert_int_equal(sf_session_load(b, folder, NULL), SF_EINPUT);
    assert_int_equal(sf_session_init(a, NULL, 3, NULL), SF_OK);
    run_replay(a, losses);
    assert_int_equal(sf_session_save(a, save, 0, NULL), SF_OK);
    assert_int_equal(sf_session_save(a, slashed, 0, NULL), SF_OK);
    assert_int_equal(sf_session_save(b, save, 0, NULL), SF_EIO); /* locked */
    assert_int_equal(sf_session_load(b, save, NULL), SF_OK);
    assert_int_equal(sf_session_load(c, save, NULL), SF_OK);
    check_same_state(a, b);
    check_same_state(a, c);
    assert_int_equal(sf_session_save(a, other, 0, NULL), SF_OK);
    assert_int_equal(sf_session_save(c, save, -1, NULL), SF_OK); /* it has loaded from there */
    sf_session_close(c);
    assert_int_equal(sf_session_init(b, NULL, 4, NULL), SF_OK);
    sf_session_close(b);
    b = open_session(NULL);
    assert_int_equal(sf_session_save(b, save, 0, NULL), SF_EUSAGE); /* of another run */
    sf_session_close(a);
    sf_session_close(b);
    sf_plan_free(four);
    sf_plan_free(two);
}

static void check_refused(sf_status status, const char *words, sf_diag *diag)
{
    assert_int_equal(status, SF_EUSAGE);
    if (!strstr(sf_diag_text(diag, 0), words))
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_clear(diag);
}

static void test_refused(void **state)
{
    (void)state;
    sf_diag *diag = sf_diag_new();
    sf_session *session, *none;
    sf_plan *plan = make_plan("dp", 2);
    sf_graph *another;
    float number = 0;
    session = open_session(NULL);
    check_refused(sf_session_write(session, -1, &number, 4, diag), "no argument -1", diag);
    check_refused(sf_session_read(session, 10000, &number, 4, diag), "no argument 10000", diag);
    check_refused(sf_session_write(session, 0, &number, 3, diag), sf_graph_argument_name(graph, 0),
                  diag);
    check_refused(sf_session_write_named(session, "nothing", &number, 4, diag), "'nothing'", diag);
    check_refused(sf_session_read_result_named(session, "nothing", &number, 4, diag), "'nothing'",
                  diag);
    check_refused(sf_session_read_result(session, 0, &number, 4, diag), "before a step", diag);
    check_refused(sf_session_read_result(session, 10000, &number, 4, diag), "no result 10000",
                  diag);
    check_refused(sf_session_run(session, -1, diag, NULL), "not negative", diag);
    sf_session_close(session);
    check_refused(
        sf_session_open(graph, &SF_OPTIONS(sf_session_options, .engine = "fire"), diag, &none),
        "fire", diag);
    assert_null(none);
    check_refused(
        sf_session_open(graph, &SF_OPTIONS(sf_session_options, .threads = -1), diag, &none),
        "threads", diag);
    assert_int_equal(
        sf_session_open(graph, &SF_OPTIONS(sf_session_options, .memory = 1000), diag, &none),
        SF_ENOMEM);
    sf_diag_clear(diag);
    assert_int_equal(sf_session_open(graph,
                                     &SF_OPTIONS(sf_session_options, .memory = 1000, .plan = plan),
                                     diag, &none),
                     SF_ENOMEM);
    sf_diag_clear(diag);
    assert_int_equal(sf_load("test/data/micro/gpt-micro.stablehlo.mlir.xz", NULL, NULL, &another),
                     SF_OK);
    check_refused(
        sf_session_open(another, &SF_OPTIONS(sf_session_options, .plan = plan), diag, &none),
        "another step", diag);
    sf_graph_free(another);
    sf_plan_free(plan);
    sf_diag_free(diag);
}

static bool stop_at_two(void *context, const sf_event *event)
{
    ++*(int *)context;
    assert_int_equal(event->steps, 5);
    return event->step < 2;
}

static void test_listener(void **state)
{
    (void)state;
    int calls = 0;
    sf_plan *plan = make_plan("dp", 2);
    sf_session_options options = {
        .size = sizeof options, .plan = plan, .listener = stop_at_two, .context = &calls};
    sf_session *session = open_session(&options);
    assert_int_equal(sf_session_run(session, 5, NULL, NULL), SF_OK);
    assert_int_equal(calls, 2);
    assert_int_equal(sf_session_steps(session), 2);
    sf_session_close(session);
    sf_plan_free(plan);
}

/* Calls that a listener makes with its session. */
static bool call_back(void *context, const sf_event *event)
{
    sf_session *session = *(sf_session **)context;
    void *data = malloc(bytes_of(0));
    int rank = sf_session_rank(session, 0);
    assert_int_equal(event->kind, SF_EVENT_STEP);
    assert_int_equal(sf_session_run(session, 1, NULL, NULL), SF_EUSAGE);
    assert_int_equal(sf_session_read(session, 0, data, bytes_of(0), NULL), SF_EUSAGE);
    assert_int_equal(sf_session_init(session, NULL, 1, NULL), SF_EUSAGE);
    assert_int_equal(sf_session_save(session, folder, 0, NULL), SF_EUSAGE);
    assert_int_equal(sf_session_load(session, folder, NULL), SF_EUSAGE);
    int64_t bytes = sf_session_shard_bytes(session, 0, rank);
    assert_int_equal(sf_session_read_shard(session, 0, rank, data, (size_t)bytes, NULL), SF_EUSAGE);
    sf_session_close(session);
    free(data);
    return true;
}

static void test_call_back(void **state)
{
    (void)state;
    sf_plan *plan = make_plan("dp", 2);
    for (int split = 0; split < 2; split++) {
        sf_session *session = NULL;
        sf_session_options options = {.size = sizeof options,
                                      .plan = split ? plan : NULL,
                                      .threads = 2,
                                      .listener = call_back,
                                      .context = &session};
        session = open_session(&options);
        assert_int_equal(sf_session_init(session, "normal:0.1", 7, NULL), SF_OK);
        assert_int_equal(sf_session_run(session, 2, NULL, NULL), SF_OK);
        assert_int_equal(sf_session_steps(session), 2);
        sf_session_close(session);
    }
    sf_plan_free(plan);
}

static sf_status use_session(const char *engine, const char *save, float *data)
{
    sf_session *session;
    sf_session_options options = {.size = sizeof options, .engine = engine, .threads = 2};
    sf_status status = sf_session_open(graph, &options, NULL, &session);
    if (status == SF_OK)
        status = sf_session_init(session, "normal:0.1", 7, NULL);
    if (status == SF_OK)
        status = sf_session_write(session, 0, data, bytes_of(0), NULL);
    if (status == SF_OK)
        status = sf_session_run(session, 1, NULL, NULL);
    if (status == SF_OK)
        status = sf_session_read(session, 0, data, bytes_of(0), NULL);
    if (status == SF_OK)
        status = sf_session_save(session, save, 0, NULL);
    if (status == SF_OK)
        status = sf_session_load(session, save, NULL);
    sf_session_close(session);
    return status;
}

/* Whichever allocation fails, that is a status, and no memory is lost. */
static void test_without_memory(void **state)
{
    (void)state;
    static const char *const engines[] = {"cpu", "oracle"};
    for (int e = 0; e < 2; e++) {
        float *data = calloc(1, bytes_of(0));
        for (long after = 0, by = 1;; after += by) {
            char save[100];
            snprintf(save, sizeof save, "%s/memory-%d-%ld", folder, e, after);
            size_t before = sf_mem_live();
            sf_mem_fail_after(after);
            sf_status status = use_session(engines[e], save, data);
            sf_mem_fail_after(-1);
            assert_int_equal(sf_mem_live(), before);
            if (status == SF_OK)
                break;
            assert_int_equal(status, SF_ENOMEM);
            by = after < 100 ? 1 : 29;
        }
        free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_training),    cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_checkpoints),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_listener),       cmocka_unit_test(test_call_back),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
