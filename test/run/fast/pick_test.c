/* Tables of picks as numbers: each comes back as it was, and no number is negative. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/fast/pick.h"
#include "support/indexing.h"

static void test_numbers_come_back(void **state)
{
    (void)state;
    test_random random = {.key = 42};
    for (int round = 0; round < 1000; round++) {
        sf_pick pick;
        for (int v = 0; v < SF_RELATION_COUNT; v++)
            for (int i = 0; i <= SF_GREATER; i++) {
                pick.value[v][i] = round == 0 || test_draw(&random, 0, 1);
                pick.index[v][i] = round == 0 || test_draw(&random, 0, 1);
            }
        int64_t number = sf_pick_number(&pick);
        assert_in_range(number, 0, (INT64_C(1) << 36) - 1);
        sf_pick back = sf_pick_of_number(number);
        assert_memory_equal(&back, &pick, sizeof pick);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
