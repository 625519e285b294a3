/* How long a rank waits for others: time in which it did not run itself hardly counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "run/comm/comm_backend.h"

/* Looks at some times after each other, and the remaining part of 10 s of patience after them. */
static void test_patience(void **state)
{
    (void)state;
    static const struct {
        double looks[4], left;
    } rows[] = {
        {{0.1, 0.2, 0.3, 0.4}, 9.6},        /* all of it counts */
        {{0.1, 100.1, 100.2, 100.3}, 9.45}, /* it was stopped for 100 s */
        {{50, 100, 150, 200}, 9.0},         /* it hardly got a processor */
        {{0.05, 0.05, 0.05, 0.05}, 9.95},   /* no time passes */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sf_patience patience = sf_patience_new(10);
        double began = patience.looked;
        for (int k = 0; k < 4; k++)
            assert_false(sf_patience_ends(&patience, began + rows[i].looks[k]));
        assert_true(fabs(patience.left - rows[i].left) < 1e-6);
    }
    sf_patience patience = sf_patience_new(1);
    double now = patience.looked;
    int looks = 1;
    while (!sf_patience_ends(&patience, now += 0.1))
        looks++;
    assert_in_range(looks, 10, 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patience),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
