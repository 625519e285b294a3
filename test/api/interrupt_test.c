/* Listeners run on the thread of the caller, and long calls are interrupted from a signal handler and from another thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "sheaf/sheaf.h"

#define STEP "test/data/micro/mlp-micro"

/* More than any test makes before it is interrupted. */
enum { MANY = 1000000 };

static sf_interrupt *interrupt;
static sf_graph *graph;
static sf_cluster *cluster;
static sf_plan *plan;

static int set_up(void **state)
{
    sf_plan_spec pin = {.size = sizeof pin, .recipe = "dp", .ranks = 2};
    (void)state;
    interrupt = sf_interrupt_new();
    return !interrupt || sf_load(STEP ".stablehlo.mlir.xz", NULL, NULL, &graph) != SF_OK ||
           sf_cluster_open("2x8xV100", NULL, &cluster) != SF_OK ||
           sf_pin_step(graph, &pin, NULL, &plan) != SF_OK;
}

static int tear_down(void **state)
{
    (void)state;
    sf_plan_free(plan);
    sf_cluster_free(cluster);
    sf_graph_free(graph);
    sf_interrupt_free(interrupt);
    return 0;
}

struct heard {
    pthread_t caller;
    int events, elsewhere; /* of these, on another thread */
};

static bool hear(void *context, const sf_event *event)
{
    struct heard *heard = context;
    heard->events++;
    heard->elsewhere += !pthread_equal(pthread_self(), heard->caller);
    return event->size == sizeof *event;
}

/* Work that may be interrupted. `listener` may be NULL. */
typedef sf_status work(sf_listener *listener, void *context, sf_interrupt *stop);

static sf_status search(sf_listener *listener, void *context, sf_interrupt *stop)
{
    sf_plan_options options = {.size = sizeof options,
                               .cluster = cluster,
                               .threads = 2,
                               .listener = listener,
                               .context = context,
                               .interrupt = stop};
    sf_plan *found;
    sf_status status = sf_plan_search(graph, NULL, &options, NULL, &found);
    if (status == SF_OK)
        assert_int_equal(sf_plan_check(found, graph, 0, NULL), SF_OK);
    sf_plan_free(found);
    return status;
}

static sf_status train(sf_listener *listener, void *context, sf_interrupt *stop)
{
    sf_train_options options = {.size = sizeof options,
                                .steps = stop ? MANY : 3,
                                .data = "synthetic",
                                .plan = plan,
                                .threads = 2,
                                .ignore_nan = true,
                                .listener = listener,
                                .context = context,
                                .interrupt = stop};
    sf_train_report report = {.size = sizeof report};
    sf_status status = sf_train(graph, &options, NULL, &report);
    if (stop) {
        assert_true(report.interrupted);
        assert_true(report.step < MANY);
    }
    return status;
}

static sf_status run_session(sf_listener *listener, void *context, sf_interrupt *stop)
{
    sf_session_options options = {.size = sizeof options,
                                  .plan = plan,
                                  .threads = 2,
                                  .listener = listener,
                                  .context = context,
                                  .interrupt = stop};
    sf_session *session;
    assert_int_equal(sf_session_open(graph, &options, NULL, &session), SF_OK);
    sf_status status = sf_session_run(session, stop ? MANY : 3, NULL, NULL);
    assert_true(sf_session_steps(session) < MANY);
    sf_session_close(session);
    return status;
}

static sf_status verify(sf_listener *listener, void *context, sf_interrupt *stop)
{
    sf_verify_options options = {.size = sizeof options,
                                 .steps = stop ? 1000 : 3,
                                 .listener = listener,
                                 .context = context,
                                 .interrupt = stop};
    sf_verify_report *report;
    sf_status status = sf_verify_plan(graph, plan, &options, NULL, &report);
    assert_true(report->nlosses < 1000);
    sf_verify_free(report);
    return status;
}

static work *const works[] = {search, train, run_session, verify};
enum { WORKS = sizeof works / sizeof *works };

static void test_thread_of_listener(void **state)
{
    (void)state;
    for (int w = 0; w < WORKS; w++) {
        struct heard heard = {.caller = pthread_self()};
        assert_int_equal(works[w](hear, &heard, NULL), SF_OK);
        assert_true(heard.events > 0);
        assert_int_equal(heard.elsewhere, 0);
    }
}

static void on_alarm(int number)
{
    (void)number;
    sf_interrupt_raise(interrupt);
}

/* A handler raises it, without a listener. */
static void test_signal(void **state)
{
    (void)state;
    signal(SIGALRM, on_alarm);
    for (int w = 0; w < WORKS; w++) {
        sf_interrupt_clear(interrupt);
        ualarm(50000, 0);
        assert_int_equal(works[w](NULL, NULL, interrupt), SF_OK);
        while (!sf_interrupt_is_raised(interrupt))
            pause();
    }
}

static void *raise_soon(void *context)
{
    (void)context;
    usleep(20000);
    sf_interrupt_raise(interrupt);
    return NULL;
}

static void test_thread(void **state)
{
    (void)state;
    for (int w = 0; w < WORKS; w++) {
        pthread_t other;
        sf_interrupt_clear(interrupt);
        assert_int_equal(pthread_create(&other, NULL, raise_soon, NULL), 0);
        assert_int_equal(works[w](NULL, NULL, interrupt), SF_OK);
        pthread_join(other, NULL);
    }
}

/* One that is raised before the call: fewer events than without it. */
static void test_raised(void **state)
{
    struct heard free = {.caller = pthread_self()}, stopped = free;
    (void)state;
    sf_interrupt_clear(interrupt);
    assert_int_equal(search(hear, &free, interrupt), SF_OK);
    sf_interrupt_raise(interrupt);
    assert_int_equal(search(hear, &stopped, interrupt), SF_OK);
    assert_true(stopped.events < free.events);
}

/* The solver: a problem that it does not solve in the time that the handler leaves it. */
static void test_solver(void **state)
{
    enum { NODES = 60, WAYS = 8 };
    int64_t costs[WAYS * WAYS];
    sf_choices *choices;
    sf_solution *solution;
    sf_solve_options options = {
        .size = sizeof options, .seconds = 60, .threads = 1, .interrupt = interrupt};
    uint64_t random = 1;
    (void)state;
    assert_int_equal(sf_choices_new(NULL, &choices), SF_OK);
    for (uint32_t a = 0; a < NODES; a++) {
        for (int i = 0; i < WAYS; i++)
            costs[i] = i;
        assert_int_equal(sf_choices_add_node(choices, WAYS, costs, NULL), SF_OK);
        for (uint32_t b = 0; b < a; b++) {
            for (int i = 0; i < WAYS * WAYS; i++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                costs[i] = (int64_t)(random >> 54);
            }
            assert_int_equal(sf_choices_add_edge(choices, b, a, costs, NULL), SF_OK);
        }
    }
    sf_interrupt_clear(interrupt);
    signal(SIGALRM, on_alarm);
    ualarm(200000, 0);
    assert_int_equal(sf_choices_solve(choices, &options, NULL, &solution), SF_OK);
    assert_int_equal(solution->stop, SF_STOP_ASKED);
    assert_true(solution->feasible);
    assert_true(solution->seconds < 30);
    sf_solution_free(solution);
    sf_choices_free(choices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread_of_listener),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_thread),
        cmocka_unit_test(test_raised),
        cmocka_unit_test(test_solver),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
