/* Ranks as threads of a process: how a world ends when one of them fails, alone or with all others. */
#include "api/run_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/mem.h"
#include "run/comm/rank_agreement.h"

enum { RANKS = 4, TENSORS = 20, VICTIM = 2 };

typedef enum fate { GOOD, INPUT, MEMORY, LATE, STUCK, ALL, SEVERAL } fate;

struct job {
    fate fate;
    int at; /* in which transfer */
    atomic_int done;
    atomic_bool settled;
};

static sf_status fail_memory(void *context)
{
    (void)context;
    sf_alloc((size_t)1 << 60);
    return SF_OK;
}

static sf_status meet(const struct job *job, int rank, sf_diag *diag)
{
    if (job->fate == INPUT && rank == VICTIM)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "a bad batch");
    if (job->fate == MEMORY && rank == VICTIM)
        return sf_guarded(fail_memory, NULL, diag);
    if (job->fate == LATE && rank == VICTIM)
        nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    while (job->fate == STUCK && rank == VICTIM)
        pause();
    return SF_OK;
}

static sf_status work(void *context, sf_comm *comm, sf_diag *diag)
{
    struct job *job = context;
    int rank = sf_comm_rank(comm);
    for (int i = 0; i < TENSORS; i++) {
        int other;
        if (i == job->at)
            SF_TRY(meet(job, rank, diag));
        SF_TRY(sf_agree_same(comm, &(uint64_t){(uint64_t)i}, 1, "tensor", diag, &other));
        assert_int_equal(other, 1);
    }
    sf_status status = SF_OK;
    if (job->fate == ALL || (job->fate == SEVERAL && rank % 2 == 1))
        status = sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "rank %d says no", rank);
    status = sf_agree(comm, status, "the end", diag);
    if (status == SF_EUSAGE)
        atomic_store(&job->settled, true);
    if (status == SF_OK)
        atomic_fetch_add(&job->done, 1);
    return status;
}

/* Runs it; `messages` are how many there must be, and all must have `text`. */
static void check(fate kind, int at, sf_status status, int messages, const char *text)
{
    struct job job = {.fate = kind, .at = at};
    sf_world world = {.ranks = RANKS,
                      .limit = kind == LATE ? 0.5 : 60,
                      .work = work,
                      .context = &job,
                      .settled = &job.settled};
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_world_run(&world, diag), status);
    assert_int_equal(atomic_load(&job.done), status == SF_OK ? RANKS : 0);
    assert_in_range(sf_diag_count(diag), messages > 0, messages);
    for (int i = 0; i < sf_diag_count(diag); i++)
        assert_non_null(strstr(sf_diag_text(diag, i), text));
    sf_diag_free(diag);
}

static void test_good(void **state)
{
    (void)state;
    check(GOOD, 0, SF_OK, 0, "");
}

static void test_one_fails(void **state)
{
    (void)state;
    for (int at = 0; at < TENSORS; at += 3) {
        check(INPUT, at, SF_EINPUT, 1, "rank 2: a bad batch");
        check(MEMORY, at, SF_ENOMEM, 1, "rank 2: out of memory");
    }
}

/* Those who waited name the one who is late and the tensor. Several may have noticed at once. */
static void test_one_is_late(void **state)
{
    (void)state;
    check(LATE, 7, SF_EPEER, RANKS, "waited 0.5 s for rank 2 in all_reduce max of 2 ui64 (tensor)");
}

/* Runs in a process of its own, which ends; its standard error goes to `text`. */
static int run_stuck(char *text, size_t room)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct job job = {.fate = STUCK, .at = 7};
        sf_world world = {.ranks = RANKS, .limit = 0.5, .work = work, .context = &job};
        dup2(ends[1], STDERR_FILENO);
        sf_world_run(&world, sf_diag_new());
        _exit(77);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; length < room - 1; length += (size_t)got)
        if ((got = read(ends[0], text + length, room - 1 - length)) <= 0)
            break;
    text[length] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A thread that never comes back is named, and does not keep the process. */
static void test_one_is_stuck(void **state)
{
    (void)state;
    char text[4096];
    time_t began = time(NULL);
    assert_int_equal(run_stuck(text, sizeof text), EXIT_FAILURE);
    assert_in_range(time(NULL) - began, 5, 20);
    assert_non_null(strstr(text, "waited 0.5 s for rank 2 in all_reduce max of 2 ui64 (tensor)"));
    assert_non_null(strstr(text, "rank 2 does not come back"));
    assert_null(strstr(text, "rank 1 does not come back"));
}

static void test_all_fail(void **state)
{
    (void)state;
    check(ALL, 0, SF_EUSAGE, 1, "rank 0: rank 0 says no");
    check(SEVERAL, 0, SF_EUSAGE, 1, "rank 1: rank 1 says no");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),        cmocka_unit_test(test_one_fails),
        cmocka_unit_test(test_one_is_late), cmocka_unit_test(test_one_is_stuck),
        cmocka_unit_test(test_all_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
