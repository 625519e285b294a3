/* Who runs a step, with times that are made up: of what is slower few steps are run, whatever single steps do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/cpu/thread_count.h"

enum { STEPS = 20000 };

/* Time of a step in one of the ways. Every tenth step takes five times as long, for reasons of its own. */
static double seconds_of(double usual, int step)
{
    return step % 10 == 3 ? 5 * usual : usual;
}

/* Runs steps, and returns how many of them were run alone. */
static int run_steps(sf_crew *crew, int steps, double together, double alone)
{
    int count = 0;
    for (int i = 0; i < steps; i++) {
        count += crew->alone;
        sf_crew_learn(crew, seconds_of(crew->alone ? alone : together, i));
    }
    return count;
}

/* Whatever the times are, almost all steps are run in the better way. */
static void test_better_way(void **state)
{
    (void)state;
    static const double times[] = {1e-5, 1e-4, 1e-3, 5e-3}, ratios[] = {0.1, 0.5, 0.8, 1.2, 2, 10};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 6; k++) {
            sf_crew crew = SF_CREW_NEW;
            int alone = run_steps(&crew, STEPS, times[i], times[i] * ratios[k]);
            int worse = ratios[k] < 1 ? STEPS - alone : alone;
            assert_true(worse < STEPS / 50);
        }
}

/* What all steps took together is near what the better way would have taken. */
static void test_little_is_lost(void **state)
{
    (void)state;
    sf_crew crew = SF_CREW_NEW;
    double all = 0, best = 0;
    for (int i = 0; i < STEPS; i++) {
        double step = seconds_of(crew.alone ? 16e-3 : 1e-3, i);
        all += step;
        best += seconds_of(1e-3, i);
        sf_crew_learn(&crew, step);
    }
    print_message("%.2f %% more than the better way\n", 100 * (all / best - 1));
    assert_true(all < 1.02 * best);
}

static void test_large_steps_are_not_tried(void **state)
{
    (void)state;
    sf_crew crew = SF_CREW_NEW;
    assert_int_equal(run_steps(&crew, STEPS, 0.5, 0.1), 0);
}

/* Others come and go: the choice follows, within as many steps as it has stood. */
static void test_follows(void **state)
{
    (void)state;
    sf_crew crew = SF_CREW_NEW;
    run_steps(&crew, STEPS, 1e-3, 2e-3);
    assert_false(crew.chosen);
    run_steps(&crew, 5000, 3e-3, 2e-3);
    assert_true(crew.chosen);
    run_steps(&crew, 1000, 1e-3, 2e-3);
    assert_false(crew.chosen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_better_way),
        cmocka_unit_test(test_little_is_lost),
        cmocka_unit_test(test_large_steps_are_not_tried),
        cmocka_unit_test(test_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
