#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/guard.h"
#include "base/mem.h"
#include "base/str.h"

static void test_alloc_is_zeroed_and_aligned(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    for (size_t bytes = 0; bytes < 300; bytes += 7) {
        unsigned char *memory = sf_alloc(bytes);
        assert_int_equal((uintptr_t)memory % 64, 0);
        for (size_t i = 0; i < bytes; i++) {
            assert_int_equal(memory[i], 0);
            memory[i] = 0xff; /* so that a reused block would show it */
        }
        sf_free(memory);
    }
    sf_free(NULL);
    assert_int_equal(sf_mem_live(), before);
}

static void test_counts_live_and_peak(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    void *a = sf_alloc(1000), *b = sf_alloc(5000);
    size_t both = sf_mem_live();
    assert_true(both >= before + 6000);
    sf_free(a);
    assert_true(sf_mem_live() < both);
    assert_true(sf_mem_peak() >= both);
    sf_free(b);
    assert_int_equal(sf_mem_live(), before);
}

static void test_try_returns_null(void **state)
{
    (void)state;
    assert_null(sf_alloc_try(SIZE_MAX));
    assert_null(sf_alloc_try(SIZE_MAX - 100));
    sf_mem_fail_after(1);
    void *first = sf_alloc_try(8), *second = sf_alloc_try(8), *third = sf_alloc_kept(8);
    sf_mem_fail_after(-1);
    assert_non_null(first);
    assert_null(second);
    assert_null(third);
    sf_free(first);
}

/* Work that allocates in many ways, frees some of it in between and would leak without a guard. */
static void build(sf_arena *arena, sf_buf *buf)
{
    for (int i = 0; i < 40; i++) {
        sf_arena_alloc(arena, (size_t)i * 300);
        sf_buf_printf(buf, "%d and some text to make it grow, ", i);
        void *scratch = sf_alloc(10);
        void *more = sf_alloc_try(10);
        sf_free(scratch);
        sf_free(more);
    }
}

static bool build_fails_at(long successes)
{
    sf_guard guard;
    sf_arena arena = {0};
    sf_buf buf = {0};
    sf_guard_enter(&guard);
    if (setjmp(guard.target) != 0) {
        sf_mem_fail_after(-1);
        return true;
    }
    sf_mem_fail_after(successes);
    build(&arena, &buf);
    sf_mem_fail_after(-1);
    sf_guard_leave(&guard);
    sf_arena_free(&arena);
    sf_buf_free(&buf);
    return false;
}

static void test_guard_frees_all_at_every_failure(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    long failures = 0;
    while (build_fails_at(failures)) {
        assert_int_equal(sf_mem_live(), before);
        failures++;
        assert_true(failures < 10000);
    }
    assert_int_equal(sf_mem_live(), before);
    assert_true(failures > 80); /* two blocks in each of the 40 rounds, and more */
}

static void test_guard_leaves_the_rest_alone(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    sf_guard outer, inner;
    char *older = sf_alloc(100);
    sf_guard_enter(&outer);
    char *volatile mine = NULL;
    char *volatile kept = NULL;
    if (setjmp(outer.target) != 0)
        fail_msg("the outer guard was hit");
    mine = sf_alloc(100);
    sf_guard_enter(&inner);
    if (setjmp(inner.target) == 0) {
        kept = sf_alloc_kept(100);
        sf_alloc(100);
        sf_free(older); /* of no guard, and before the guard */
        sf_mem_fail_after(0);
        sf_alloc(100);
        fail_msg("an allocation that failed returned");
    }
    sf_mem_fail_after(-1);
    mine[99] = kept[99] = 1; /* the sanitizer knows if they are gone */
    sf_guard_leave(&outer);
    sf_free(mine);
    sf_free(kept);
    assert_int_equal(sf_mem_live(), before);
}

static void test_left_blocks_belong_to_the_outer_guard(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    sf_guard outer, inner;
    sf_guard_enter(&outer);
    if (setjmp(outer.target) == 0) {
        sf_guard_enter(&inner);
        if (setjmp(inner.target) != 0)
            fail_msg("the inner guard was hit after it was left");
        for (int i = 0; i < 10; i++)
            sf_alloc(100);
        sf_guard_leave(&inner);
        sf_mem_fail_after(0);
        sf_alloc(1);
        fail_msg("an allocation that failed returned");
    }
    sf_mem_fail_after(-1);
    assert_int_equal(sf_mem_live(), before);
}

/* May say that memory is short, or something else, before it runs out. */
static sf_status say_and_run_out(void *context)
{
    sf_diag *diag = ((sf_diag **)context)[0];
    if (((sf_diag **)context)[1])
        sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for a transfer");
    else
        sf_warn(diag, SF_NOWHERE, "it will be slow");
    sf_mem_fail_after(0);
    sf_alloc(1);
    return SF_OK;
}

static void test_that_memory_ran_out_is_said_once(void **state)
{
    (void)state;
    sf_diag *diag = sf_diag_new(), *quiet[] = {diag, NULL}, *loud[] = {diag, diag};
    assert_int_equal(sf_guarded(say_and_run_out, loud, diag), SF_ENOMEM);
    sf_mem_fail_after(-1);
    assert_int_equal(sf_diag_count(diag), 1);
    assert_int_equal(sf_guarded(say_and_run_out, quiet, diag), SF_ENOMEM);
    sf_mem_fail_after(-1);
    assert_int_equal(sf_diag_count(diag), 3);
    assert_int_equal(sf_guarded(say_and_run_out, loud, NULL), SF_ENOMEM);
    sf_mem_fail_after(-1);
    sf_diag_free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_is_zeroed_and_aligned),
        cmocka_unit_test(test_counts_live_and_peak),
        cmocka_unit_test(test_try_returns_null),
        cmocka_unit_test(test_guard_frees_all_at_every_failure),
        cmocka_unit_test(test_guard_leaves_the_rest_alone),
        cmocka_unit_test(test_left_blocks_belong_to_the_outer_guard),
        cmocka_unit_test(test_that_memory_ran_out_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
