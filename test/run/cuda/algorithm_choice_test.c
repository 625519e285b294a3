/* Of the ways to a product, the one that takes the least time is taken, and stays taken: in the process, and by the next one. A
 * made-up driver says how long each takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "run/cuda/algorithm_choice.h"

/* The clock of the made-up GPU, and what its ways take; a way that takes nothing does not go. */
static float now, *took;
static float marks[2];
static int nmarks;

static int make_event(void **event, unsigned flags)
{
    (void)flags;
    *event = &marks[nmarks++ % 2];
    return 0;
}

static int drop_event(void *event)
{
    (void)event;
    return 0;
}

static int record_event(void *event, cu_stream stream)
{
    (void)stream;
    *(float *)event = now;
    return 0;
}

static int wait_stream(cu_stream stream)
{
    (void)stream;
    return 0;
}

static int elapsed(float *milliseconds, void *from, void *to)
{
    *milliseconds = *(float *)to - *(float *)from;
    return 0;
}

static int run_way(void *context, int way)
{
    int *runs = context;
    ++*runs;
    now += took[way];
    return took[way] > 0 ? 0 : 7;
}

/* Which of 4 ways is taken, of a product of that key; *runs counts. */
static int taken(uint64_t key, float *times, int *runs)
{
    static const sf_cuda_driver driver = {.event_create = make_event,
                                          .event_destroy = drop_event,
                                          .event_record = record_event,
                                          .event_elapsed = elapsed,
                                          .stream_wait = wait_stream};
    sf_choice choice = {.key = key, .count = 4};
    took = times;
    *runs = 0;
    sf_choose(&choice, &(sf_trial){&driver, NULL, run_way, runs});
    assert_true(choice.is_made);
    return choice.way;
}

static float slow_first[] = {4, 3, 1, 2}, fast_first[] = {1, 3, 4, 2}, broken[] = {2, 0, 1.5F, 0},
             alike[] = {1, 0.99F, 0.995F, 1};

static void test_fastest_is_taken(void **state)
{
    (void)state;
    int runs;
    assert_int_equal(taken(1, slow_first, &runs), 2);
    assert_int_equal(runs, 16);
    assert_int_equal(taken(2, fast_first, &runs), 0);
    assert_int_equal(taken(3, broken, &runs), 2);
    assert_int_equal(taken(4, alike, &runs), 0);
}

static void test_choice_stays(void **state)
{
    (void)state;
    int runs;
    assert_int_equal(taken(11, slow_first, &runs), 2);
    assert_int_equal(taken(11, fast_first, &runs), 2);
    assert_int_equal(runs, 0);
}

static void test_next_process_takes_it(void **state)
{
    (void)state;
    int runs, status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(taken(21, slow_first, &runs));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 2);
    assert_int_equal(taken(21, fast_first, &runs), 2);
    assert_int_equal(runs, 0);
}

/* Of which nothing could be kept, no time is asked: another run might find another one. */
static void test_nowhere_to_keep(void **state)
{
    (void)state;
    int runs;
    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    assert_int_equal(taken(31, slow_first, &runs), 0);
    assert_int_equal(runs, 0);
}

static int make_folder(void **state)
{
    static char folder[] = "sheaf-choices-XXXXXX";
    (void)state;
    char path[4096];
    if (!mkdtemp(folder) || !realpath(folder, path))
        return -1;
    return setenv("XDG_CACHE_HOME", path, 1);
}

static int drop_folder(void **state)
{
    (void)state;
    return system("rm -rf sheaf-choices-??????");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fastest_is_taken),
        cmocka_unit_test(test_choice_stays),
        cmocka_unit_test(test_next_process_takes_it),
        cmocka_unit_test(test_nowhere_to_keep),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
