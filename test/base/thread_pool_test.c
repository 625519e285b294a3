/* The pool of threads: every index once, the same cut each time, waking after sleep, sharing processors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/mem.h"
#include "base/thread_pool.h"
#include "support/sanitized.h"

enum { MOST = 4000, THREADS = 5 };

typedef struct record {
    int parts[MOST]; /* which part did the index; unsynchronised, as real work is */
    int counts[MOST];
    int64_t grain;
} record;

static void note(void *context, int part, int64_t first, int64_t end)
{
    record *r = context;
    for (int64_t i = first; i < end; i++) {
        r->parts[i] = part;
        r->counts[i]++;
    }
}

static void check(const record *r, int64_t total, int64_t grain, int threads)
{
    int64_t sizes[THREADS] = {0}, smallest = total, largest = 0;
    for (int64_t i = 0; i < total; i++) {
        assert_int_equal(r->counts[i], 1);
        assert_in_range(r->parts[i], 0, threads - 1);
        assert_true(i == 0 || r->parts[i] == r->parts[i - 1] ||
                    (r->parts[i] == r->parts[i - 1] + 1 && i % grain == 0));
        sizes[r->parts[i]]++;
    }
    int used = total ? r->parts[total - 1] + 1 : 0;
    int64_t units = (total + grain - 1) / grain;
    assert_int_equal(used, units < threads ? units : threads);
    for (int p = 0; p < used; p++) {
        smallest = sizes[p] < smallest ? sizes[p] : smallest;
        largest = sizes[p] > largest ? sizes[p] : largest;
    }
    assert_true(used == 0 || largest - smallest < 2 * grain);
}

static void test_cut(void **state)
{
    (void)state;
    static record r;
    for (int count = 1; count <= THREADS; count++) {
        sf_threads *threads = sf_threads_new(count);
        assert_non_null(threads);
        assert_int_equal(sf_threads_count(threads), count);
        for (int64_t total = 0; total < 300; total += total < 20 ? 1 : 37)
            for (int64_t grain = 1; grain < 100; grain *= 3) {
                memset(&r, 0, sizeof r);
                sf_threads_run(threads, total, grain, note, &r);
                check(&r, total, grain, count);
            }
        sf_threads_free(threads);
    }
}

/* Many short jobs, with pauses now and then that are long enough to fall asleep. Each job adds to
 * the result of the previous one, so a job that starts early or is missed shows. */
static void add(void *context, int part, int64_t first, int64_t end)
{
    int64_t *sums = context;
    (void)part;
    for (int64_t i = first; i < end; i++)
        sums[i] += sums[(i + 1) % 2 ? i : i - 1] >= 0 ? 1 : 0;
}

static void test_many_jobs(void **state)
{
    (void)state;
    for (int count = 2; count <= THREADS; count++) {
        int64_t sums[64] = {0};
        sf_threads *threads = sf_threads_new(count);
        for (int job = 0; job < 5000; job++) {
            sf_threads_run(threads, 64, job % 3 ? 2 : 32, add, sums);
            if (job % 1000 == 0)
                nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        }
        for (int i = 0; i < 64; i++)
            assert_int_equal(sums[i], 5000);
        sf_threads_free(threads);
    }
}

/* Rests and parts of all lengths up to beyond the time that a thread spins: some jobs come, and some
 * end, just when the other side falls asleep. A wake-up that is lost stops the test for good. */
static void rest(int turns)
{
    for (volatile int i = 0; i < turns; i++)
        ;
}

static void uneven(void *context, int part, int64_t first, int64_t end)
{
    const int *job = context;
    (void)first;
    (void)end;
    if (part == 1)
        rest(*job * 13 % 9000);
}

static void test_falling_asleep(void **state)
{
    (void)state;
    sf_threads *threads = sf_threads_new(2);
    int jobs = test_short() ? 10000 : 100000;
    alarm(120);
    for (int job = 0; job < jobs; job++) {
        rest(job * 7 % 9000);
        sf_threads_run(threads, 2, 1, uneven, &job);
    }
    alarm(0);
    sf_threads_free(threads);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void keep_processors(const cpu_set_t *from, int count)
{
    cpu_set_t few;
    CPU_ZERO(&few);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, from) && CPU_COUNT(&few) < count)
            CPU_SET(i, &few);
    assert_int_equal(sched_setaffinity(0, sizeof few, &few), 0);
}

/* 16 threads on two processors and on one. Threads that wait for the time slices of others that
 * spin would take some ten milliseconds for a job; a tenth of a millisecond was measured. */
static void test_more_threads_than_processors(void **state)
{
    (void)state;
    enum { MANY = 16, JOBS = 500 };
    cpu_set_t before;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (int processors = 2; processors > 0; processors--) {
        keep_processors(&before, processors);
        int64_t sums[64] = {0};
        sf_threads *threads = sf_threads_new(MANY);
        double start = seconds();
        for (int job = 0; job < JOBS; job++)
            sf_threads_run(threads, 64, 1, add, sums);
        assert_true(seconds() - start < JOBS * 0.01);
        for (int i = 0; i < 64; i++)
            assert_int_equal(sums[i], JOBS);
        sf_threads_free(threads);
    }
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static void test_affinity(void **state)
{
    (void)state;
    cpu_set_t before;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    sf_threads *threads = sf_threads_new(0);
    assert_int_equal(sf_threads_count(threads), CPU_COUNT(&before));
    sf_threads_free(threads);
    keep_processors(&before, 1);
    threads = sf_threads_new(0);
    assert_int_equal(sf_threads_count(threads), 1);
    sf_threads_free(threads);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_null(sf_threads_new(1 << 20));
    sf_threads_free(NULL);
}

/* Items that allocate on the threads, of which one, or their caller afterwards, runs out of memory. */
typedef struct items {
    sf_threads *threads;
    int64_t failing;
    int done[MOST];
} items;

enum { ITEMS = 100 };

static void do_item(void *context, int64_t i, int part)
{
    items *all = context;
    (void)part;
    void *kept = sf_alloc(100), *freed = sf_alloc(200);
    sf_free(freed);
    if (i == all->failing)
        sf_guard_fail();
    all->done[i] += kept != NULL;
}

static sf_status do_items(void *context)
{
    items *all = context;
    sf_guarded_each(all->threads, ITEMS, do_item, all);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(all->done[i], 1);
    if (all->failing == ITEMS)
        sf_guard_fail();
    return SF_OK;
}

static void test_memory_of_items(void **state)
{
    (void)state;
    for (int threads = 1; threads <= THREADS; threads += 2)
        for (int64_t failing = 0; failing <= ITEMS; failing += 20) {
            items all = {.threads = sf_threads_new(threads), .failing = failing};
            size_t before = sf_mem_live();
            assert_int_equal(sf_guarded(do_items, &all, NULL), SF_ENOMEM);
            assert_int_equal(sf_mem_live(), before);
            sf_threads_free(all.threads);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_many_jobs),
        cmocka_unit_test(test_falling_asleep),
        cmocka_unit_test(test_more_threads_than_processors),
        cmocka_unit_test(test_affinity),
        cmocka_unit_test(test_memory_of_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
