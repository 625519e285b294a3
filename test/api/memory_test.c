/* A rank that is a thread runs out of memory, at each allocation: the run ends immediately, with
 * one message. */
#include "api/run_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/machine.h"
#include "base/mem.h"
#include "sheaf/sheaf.h"
#include "support/sanitized.h"
#include "train/train.h"

#define STEP "test/data/micro/mlp-micro.stablehlo.mlir.xz"

static char folder[] = "/tmp/sheaf-memory-XXXXXX";

struct job {
    const sf_graph *graph;
    sf_train_options options;
    int victim;
    long successes; /* of the victim's allocations; negative: all */
    atomic_bool settled, failed;
};

static sf_status run_training(void *context)
{
    return sf_training_run(context);
}

/* As sf_train does it, but for the memory. */
static sf_status train_rank(void *context, sf_comm *comm, sf_diag *diag)
{
    struct job *job = context;
    sf_training training = {
        .graph = job->graph, .options = job->options, .diag = diag, .comm = comm};
    sf_status status = sf_threads_open(1, diag, &training.pool);
    if (sf_comm_rank(comm) == job->victim)
        sf_mem_fail_after(job->successes);
    if (status == SF_OK)
        status = sf_guarded(run_training, &training, diag);
    if (sf_comm_rank(comm) == job->victim)
        atomic_store(&job->failed, status != SF_OK);
    if (training.settled)
        atomic_store(&job->settled, true);
    sf_training_end(&training);
    sf_threads_free(training.pool);
    return status;
}

static void check_said(sf_diag *diag, const struct job *job)
{
    char name[20];
    snprintf(name, sizeof name, "rank %d: ", job->victim);
    const char *text = sf_diag_text(diag, 0);
    if (sf_diag_count(diag) != 1 || !strstr(text, name) || !strstr(text, "memory"))
        for (int i = 0; i < sf_diag_count(diag); i++)
            print_message("after %ld: %s\n", job->successes, sf_diag_text(diag, i));
    assert_int_equal(sf_diag_count(diag), 1);
    assert_non_null(strstr(text, name));
    assert_non_null(strstr(text, "memory"));
}

/* False when the victim came through. */
static bool run_with(const sf_graph *graph, const sf_plan *plan, int victim, long successes)
{
    char save[100];
    snprintf(save, sizeof save, "%s/%d-%ld", folder, victim, successes);
    struct job job = {.graph = graph,
                      .options = {.steps = 2,
                                  .data = "synthetic",
                                  .engine = "cpu",
                                  .save = save,
                                  .save_every = 1,
                                  .plan = plan},
                      .victim = victim,
                      .successes = successes};
    sf_world world = {.ranks = sf_plan_ranks(plan),
                      .limit = 60,
                      .work = train_rank,
                      .context = &job,
                      .settled = &job.settled};
    sf_diag *diag = sf_diag_new();
    double began = sf_now();
    sf_status status = sf_world_run(&world, diag);
    double took = sf_now() - began;
    if (took > 10)
        print_message("after %ld: %.1f s\n", successes, took);
    assert_true(
        took < 10); /* far from the limit; a run takes 0.1 s, on a machine that does nothing else */
    if (status != SF_OK) {
        assert_int_equal(status, SF_ENOMEM);
        check_said(diag, &job);
    }
    sf_diag_free(diag);
    return status != SF_OK;
}

static void test_each_allocation(void **state)
{
    (void)state;
    sf_graph *graph = NULL;
    sf_plan *plan = NULL;
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_load(STEP, NULL, diag, &graph), SF_OK);
    sf_plan_spec options = {.size = sizeof options, .ranks = 4, .recipe = "zero3"};
    assert_int_equal(sf_pin_step(graph, &options, diag, &plan), SF_OK);
    for (int victim = 0; victim < 3; victim += 2) {
        long last = 0, gap = 1;
        for (long n = 0; run_with(graph, plan, victim, n); n += gap) {
            last = n;
            gap = 1 + n / (test_short() ? 4 : 16);
        }
        assert_true(last > 100);
    }
    sf_plan_free(plan);
    sf_graph_free(graph);
    sf_diag_free(diag);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_allocation, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
