/* Orders as numbers: every key in every place comes back as it was, and no number is negative. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/fast/sort_keys.h"
#include "support/indexing.h"

static sf_order_key draw_key(test_random *random, int number)
{
    static const int operands[] = {0, 1, 2, 3, 30, SF_ORDER_OPERANDS - 1};
    int flags = number % 32;
    return (sf_order_key){.operand = operands[test_draw(random, 0, 5)],
                          .descending = flags & 1,
                          .total = flags & 2,
                          .folds_zero = flags & 4,
                          .folds_nan = flags & 8,
                          .stops_at_nan = flags & 16};
}

static void assert_same_key(const sf_order_key *a, const sf_order_key *b)
{
    assert_int_equal(a->operand, b->operand);
    assert_int_equal(a->descending, b->descending);
    assert_int_equal(a->total, b->total);
    assert_int_equal(a->folds_zero, b->folds_zero);
    assert_int_equal(a->folds_nan, b->folds_nan);
    assert_int_equal(a->stops_at_nan, b->stops_at_nan);
}

static void test_numbers_come_back(void **state)
{
    (void)state;
    test_random random = {.key = 41};
    for (int round = 0; round < 4000; round++) {
        sf_order order = {.count = 1 + round % SF_ORDER_MOST};
        for (int k = 0; k < order.count; k++)
            order.keys[k] = draw_key(&random, k == 0 ? round / 4 : (int)test_draw(&random, 0, 31));
        int64_t number = sf_order_number(&order);
        assert_true(number >= 0);
        sf_order back = sf_order_of_number(number);
        assert_int_equal(back.count, order.count);
        for (int k = 0; k < order.count; k++)
            assert_same_key(&back.keys[k], &order.keys[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
