#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/intern.h"

static void test_equal_texts_are_one_pointer(void **state)
{
    (void)state;
    enum { N = 3000 };
    sf_arena arena = {0};
    sf_interner strings = {0};
    const char *first[N];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            char text[32];
            int length = snprintf(text, sizeof text, "name_%d", i);
            const char *one = sf_intern_string(&strings, &arena, (sf_str){text, (size_t)length});
            assert_string_equal(one, text);
            if (round == 0)
                first[i] = one;
            assert_ptr_equal(one, first[i]);
        }
    }
    assert_int_equal(strings.count, N);
    for (int i = 1; i < N; i++)
        assert_ptr_not_equal(first[i], first[i - 1]);
    sf_arena_free(&arena);
}

static void test_length_and_zero_bytes_count(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_interner strings = {0};
    const char *a = sf_intern_string(&strings, &arena, (sf_str){"ab\0c", 4});
    const char *b = sf_intern_string(&strings, &arena, (sf_str){"ab\0d", 4});
    const char *c = sf_intern_string(&strings, &arena, (sf_str){"ab", 2});
    const char *empty = sf_intern_string(&strings, &arena, (sf_str){0});
    assert_ptr_not_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_memory_equal(a, "ab\0c", 5);
    assert_ptr_equal(empty, sf_intern_string(&strings, &arena, sf_str_of("")));
    assert_string_equal(empty, "");
    sf_arena_free(&arena);
}

static bool equal_number(const void *item, const void *key)
{
    return *(const int *)item == *(const int *)key;
}

/* One hash for all: then only the comparison distinguishes them. */
static void test_collisions(void **state)
{
    (void)state;
    static int numbers[200];
    sf_arena arena = {0};
    sf_interner interner = {0};
    for (int i = 0; i < 200; i++) {
        numbers[i] = i;
        sf_intern_slot *slot = sf_intern_find(&interner, &arena, 42, equal_number, &numbers[i]);
        assert_null(slot->item);
        slot->item = &numbers[i];
    }
    for (int i = 0; i < 200; i++)
        assert_ptr_equal(sf_intern_find(&interner, &arena, 42, equal_number, &i)->item,
                         &numbers[i]);
    sf_arena_free(&arena);
}

/* Plans name hashes, so the values are fixed for good: these change only with the file formats. */
static void test_hash_is_stable(void **state)
{
    (void)state;
    assert_true(sf_hash_bytes(1, "sheaf and more", 14) == sf_hash_bytes(1, "sheaf and more", 14));
    assert_true(sf_hash_bytes(1, "a", 1) == UINT64_C(0x27ee3dab8e0779b4));
    assert_true(sf_hash_bytes(1, "abcdefgh", 8) == UINT64_C(0x678dd0fca3e50540));
    for (size_t a = 0; a < 20; a++)
        for (size_t b = 0; b < a; b++)
            assert_true(sf_hash_bytes(1, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", a) !=
                        sf_hash_bytes(1, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", b));
}

static void test_checked(void **state)
{
    (void)state;
    int64_t out = 5;
    assert_false(sf_mul(INT64_MAX, 2, &out));
    assert_false(sf_mul(INT64_MIN, -1, &out));
    assert_false(sf_add(INT64_MAX, 1, &out));
    assert_true(out == 5);
    assert_true(sf_mul(-3, 4, &out) && out == -12);
    assert_true(sf_add(INT64_MAX, INT64_MIN, &out) && out == -1);
    for (int64_t b = 1; b < 6; b++) {
        for (int64_t a = -20; a <= 20; a++) {
            int64_t down = sf_floor_div(a, b), up = sf_ceil_div(a, b);
            assert_true(down * b <= a && (down + 1) * b > a);
            assert_true(up * b >= a && (up - 1) * b < a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_texts_are_one_pointer),
        cmocka_unit_test(test_length_and_zero_bytes_count),
        cmocka_unit_test(test_collisions),
        cmocka_unit_test(test_hash_is_stable),
        cmocka_unit_test(test_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
