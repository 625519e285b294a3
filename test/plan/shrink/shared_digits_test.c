/* Digits: dimensions that are tied are made of the same ones, and keep fitting together at other sizes. */
#include "plan/shrink/shared_digits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { RANKS = 4 };

static void tie(sf_digits *digits, uint32_t first, int na, int nb)
{
    uint32_t all[16];
    for (int i = 0; i < na + nb; i++)
        all[i] = first + (uint32_t)i;
    sf_digits_tie(digits, na, all, nb, all + na);
}

/* Shapes of the same number of elements: their new sizes have the same product. */
static void test_products(void **state)
{
    (void)state;
    static const struct {
        int na, nb;
        int64_t sizes[8];
    } cases[] = {
        {1, 2, {512, 4, 128}},   {2, 2, {512, 1024, 4, 131072}}, {3, 2, {16, 64, 3, 1024, 3}},
        {2, 2, {6, 35, 10, 21}}, {2, 3, {768, 50, 12, 64, 50}},  {2, 2, {12, 64, 8, 96}},
        {3, 1, {1, 1, 1, 1}},    {1, 3, {51200, 1, 51200, 1}},   {2, 2, {1 << 20, 7, 7, 1 << 20}}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        sf_arena arena = {0};
        sf_digits digits = {.arena = &arena};
        int64_t products[2] = {1, 1}, before = 1;
        for (int i = 0; i < cases[c].na + cases[c].nb; i++)
            sf_digits_add(&digits, cases[c].sizes[i], false);
        tie(&digits, 0, cases[c].na, cases[c].nb);
        for (int i = 0; i < cases[c].na + cases[c].nb; i++)
            products[i >= cases[c].na] *= sf_digits_size(&digits, (uint32_t)i, RANKS);
        for (int i = 0; i < cases[c].na; i++)
            before *= cases[c].sizes[i];
        if (products[0] != products[1] || products[0] > before)
            fail_msg("case %zu: %ld and %ld", c, (long)products[0], (long)products[1]);
        sf_arena_free(&arena);
    }
}

static void test_cuts(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_digits digits = {.arena = &arena};
    /* 1024 = 4 ranks by 256, and 1024 = 16 by 64. */
    uint32_t dim = sf_digits_add(&digits, 1024, false);
    uint32_t split[] = {sf_digits_add(&digits, 4, true), sf_digits_add(&digits, 256, false)};
    uint32_t heads[] = {sf_digits_add(&digits, 16, false), sf_digits_add(&digits, 64, false)};
    sf_digits_tie(&digits, 1, &dim, 2, split);
    sf_digits_tie(&digits, 1, &dim, 2, heads);
    int64_t unit = sf_digits_size(&digits, heads[1], RANKS);
    assert_int_equal(sf_digits_unit(&digits, dim, 64, RANKS), unit);
    assert_int_equal(sf_digits_size(&digits, heads[0], RANKS) % 4, 0);
    assert_int_equal(sf_digits_size(&digits, dim, RANKS),
                     sf_digits_size(&digits, heads[0], RANKS) * unit);
    assert_true(sf_digits_size(&digits, dim, RANKS) < 1024);
    assert_int_equal(sf_digits_unit(&digits, dim, 1024, RANKS),
                     sf_digits_size(&digits, dim, RANKS));
    assert_int_equal(sf_digits_unit(&digits, dim, 1, RANKS), 1);
    assert_int_equal(sf_digits_unit(&digits, dim, 3, RANKS), 0);
    /* What is the same keeps its size as one. */
    sf_digits_fix(&digits, heads[1]);
    assert_int_equal(sf_digits_size(&digits, heads[1], RANKS), 64);
    assert_int_equal(sf_digits_unit(&digits, dim, 64, RANKS), 64);
    sf_arena_free(&arena);
}

static void test_smaller(void **state)
{
    (void)state;
    assert_int_equal(sf_digits_smaller(1024, 4), 8);
    assert_int_equal(sf_digits_smaller(1024, 32), 32);
    assert_int_equal(sf_digits_smaller(50257, 4), 9);
    assert_int_equal(sf_digits_smaller(50, 4), 10);
    assert_int_equal(sf_digits_smaller(5, 4), 5);
    assert_int_equal(sf_digits_smaller(12, 8), 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_smaller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
