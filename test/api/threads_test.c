/* One step, one cluster, four threads: each plans, lowers and runs by itself, and all get the same. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sheaf/sheaf.h"

enum { THREADS = 4, RANKS = 2, STEPS = 2 };

/* Shared, and constant. */
struct shared {
    const sf_graph *graph;
    const sf_cluster *cluster;
    const sf_plan *plan;
};

struct text {
    size_t length;
    char *at;
};

struct worker {
    const struct shared *shared;
    sf_status status;
    struct text plan, program; /* as written */
    double losses[2][STEPS];   /* of training, and of a session: by the plan of all */
    double own;                /* of the last step of a session by the worker's own plan */
    char *state;               /* an argument after that */
    size_t bytes;
};

static bool add_text(void *context, const char *text, size_t length)
{
    struct text *to = context;
    char *grown = realloc(to->at, to->length + length);
    if (!grown)
        return false;
    to->at = grown;
    memcpy(to->at + to->length, text, length);
    to->length += length;
    return true;
}

static bool keep_loss(void *context, const sf_event *event)
{
    if (event->kind == SF_EVENT_STEP)
        ((double *)context)[event->step - 1] = event->loss;
    return true;
}

static sf_status lower_step(struct worker *w, sf_diag *diag)
{
    sf_output output = {.size = sizeof output, .write = add_text, .context = &w->program};
    return sf_show_program(w->shared->graph, &output, diag);
}

static sf_status train_split(struct worker *w, sf_diag *diag)
{
    sf_train_options options = {.size = sizeof options,
                                .steps = STEPS,
                                .data = "synthetic",
                                .threads = RANKS,
                                .plan = w->shared->plan,
                                .listener = keep_loss,
                                .context = w->losses[0]};
    return sf_train(w->shared->graph, &options, diag, NULL);
}

static sf_status run_session(struct worker *w, const sf_plan *plan, double *losses, sf_diag *diag)
{
    sf_session_options options = {.size = sizeof options,
                                  .plan = plan,
                                  .threads = RANKS,
                                  .listener = keep_loss,
                                  .context = losses};
    sf_session *session;
    sf_status status = sf_session_open(w->shared->graph, &options, diag, &session);
    if (status == SF_OK)
        status = sf_session_init(session, NULL, 0, diag);
    if (status == SF_OK)
        status = sf_session_run(session, STEPS, diag, &w->own);
    if (status == SF_OK)
        status = sf_session_read(session, 0, w->state, w->bytes, diag);
    sf_session_close(session);
    return status;
}

static sf_status plan_and_run(struct worker *w, sf_diag *diag)
{
    const struct shared *shared = w->shared;
    sf_plan_options options = {
        .size = sizeof options, .cluster = shared->cluster, .level = 2, .threads = 1};
    sf_output output = {.size = sizeof output, .write = add_text, .context = &w->plan};
    double losses[STEPS];
    sf_plan *plan;
    sf_status status = sf_plan_search(shared->graph, NULL, &options, diag, &plan);
    if (status == SF_OK)
        status = sf_plan_save(plan, shared->graph, &output, diag);
    if (status == SF_OK)
        status = sf_plan_check(plan, shared->graph, 0, diag);
    if (status == SF_OK)
        status = run_session(w, plan, losses, diag);
    sf_plan_free(plan);
    return status;
}

static void *work(void *context)
{
    struct worker *w = context;
    sf_diag *diag = sf_diag_new();
    w->status = lower_step(w, diag);
    if (w->status == SF_OK)
        w->status = train_split(w, diag);
    if (w->status == SF_OK)
        w->status = run_session(w, w->shared->plan, w->losses[1], diag);
    if (w->status == SF_OK)
        w->status = plan_and_run(w, diag);
    for (int i = 0; sf_diag_text(diag, i); i++)
        print_message("%s\n", sf_diag_text(diag, i));
    sf_diag_free(diag);
    return NULL;
}

static void check_text(const struct text *a, const struct text *b)
{
    assert_true(a->length > 0);
    assert_int_equal(a->length, b->length);
    assert_memory_equal(a->at, b->at, a->length);
}

static void check_workers(const struct worker *workers)
{
    const struct worker *first = &workers[0];
    for (int i = 0; i < THREADS; i++) {
        const struct worker *w = &workers[i];
        assert_int_equal(w->status, SF_OK);
        check_text(&w->plan, &first->plan);
        check_text(&w->program, &first->program);
        assert_memory_equal(w->losses, first->losses, sizeof w->losses);
        assert_memory_equal(&w->own, &first->own, sizeof w->own);
        assert_memory_equal(w->state, first->state, w->bytes);
    }
}

static void test_threads(void **state)
{
    (void)state;
    sf_graph *graph;
    sf_cluster *cluster;
    sf_plan *plan;
    sf_tensor_type type = {.size = sizeof type};
    sf_plan_spec pins = {.size = sizeof pins, .recipe = "zero3", .ranks = RANKS};
    assert_int_equal(sf_load("test/data/micro/mlp-micro.stablehlo.mlir.xz", NULL, NULL, &graph),
                     SF_OK);
    assert_int_equal(sf_cluster_open("1x2xV100", NULL, &cluster), SF_OK);
    assert_int_equal(sf_pin_step(graph, &pins, NULL, &plan), SF_OK);
    assert_true(sf_graph_argument_type(graph, 0, &type));
    struct shared shared = {graph, cluster, plan};
    struct worker workers[THREADS] = {0};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i].shared = &shared;
        workers[i].bytes = (size_t)type.count * (size_t)type.bytes;
        workers[i].state = malloc(workers[i].bytes);
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    check_workers(workers);
    for (int i = 0; i < THREADS; i++) {
        free(workers[i].state);
        free(workers[i].plan.at);
        free(workers[i].program.at);
    }
    sf_plan_free(plan);
    sf_cluster_free(cluster);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
