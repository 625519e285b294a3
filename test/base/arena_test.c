#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"

static uint32_t random_state = 1;

static uint32_t next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static void check_zero(const unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(memory[i], 0);
}

/* Blocks do not overlap, are zeroed and aligned; allocations before a mark survive its reset, and
 * allocations after it are zeroed too. */
static void test_random_use(void **state)
{
    (void)state;
    enum { BLOCKS = 400 };
    size_t before = sf_mem_live();
    sf_arena arena = {0};
    unsigned char *blocks[BLOCKS];
    size_t sizes[BLOCKS];
    for (int round = 0; round < 30; round++) {
        int count = 0, marked = -1;
        sf_mark mark = {0};
        for (int step = 0; step < BLOCKS; step++) {
            if (marked < 0 && next_random() % 50 == 0) {
                mark = sf_arena_mark(&arena);
                marked = count;
            } else if (marked >= 0 && next_random() % 50 == 0) {
                sf_arena_reset(&arena, mark);
                count = marked;
                marked = -1;
            }
            size_t size = next_random() % (next_random() % 20 == 0 ? 9000 : 200);
            blocks[count] = sf_arena_alloc(&arena, size);
            sizes[count] = size;
            assert_int_equal((uintptr_t)blocks[count] % 16, 0);
            check_zero(blocks[count], size);
            memset(blocks[count], count % 255 + 1, size);
            count++;
        }
        for (int i = 0; i < count; i++)
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(blocks[i][k], i % 255 + 1);
        sf_arena_free(&arena);
        assert_int_equal(sf_mem_live(), before);
    }
}

/* The case that is easy to get wrong: dirt in the marked chunk, little in the chunk after it. */
static void test_reset_clears_the_marked_chunk(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_arena_alloc(&arena, 2000);
    sf_mark mark = sf_arena_mark(&arena);
    memset(sf_arena_alloc(&arena, 1600), 0xff, 1600);
    memset(sf_arena_alloc(&arena, 1200), 0xff, 1200);
    sf_arena_reset(&arena, mark);
    check_zero(sf_arena_alloc(&arena, 1600), 1600);
    sf_arena_free(&arena);
}

static void test_copies(void **state)
{
    (void)state;
    sf_arena arena = {0};
    char *text = sf_arena_string(&arena, "abcdef", 3);
    assert_string_equal(text, "abc");
    assert_string_equal(sf_arena_string(&arena, NULL, 0), "");
    int numbers[3] = {1, 2, 3};
    int *copy = sf_arena_copy(&arena, numbers, sizeof numbers);
    assert_memory_equal(copy, numbers, sizeof numbers);
    sf_arena_free(&arena);
}

static void test_push(void **state)
{
    (void)state;
    sf_arena arena = {0};
    int *array = NULL;
    size_t count = 0, capacity = 0;
    for (int i = 0; i < 1000; i++)
        SF_PUSH(&arena, array, count, capacity, i * 3);
    assert_int_equal(count, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(array[i], i * 3);
    sf_arena_free(&arena);
}

static void test_try_and_overflow(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    sf_arena arena = {0};
    assert_null(sf_arena_alloc_try(&arena, SIZE_MAX));
    sf_mem_fail_after(0);
    void *none = sf_arena_alloc_try(&arena, 10);
    sf_mem_fail_after(-1);
    assert_null(none);
    assert_non_null(sf_arena_alloc_try(&arena, 10));
    sf_guard guard;
    sf_guard_enter(&guard);
    if (setjmp(guard.target) == 0) {
        SF_ARRAY(&arena, SIZE_MAX / 4, int64_t); /* the product does not fit */
        fail_msg("an array of that size cannot be");
    }
    sf_arena_free(&arena);
    assert_int_equal(sf_mem_live(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_use),
        cmocka_unit_test(test_reset_clears_the_marked_chunk),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_try_and_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
