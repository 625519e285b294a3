/* Sums over taps, of convolutions: every set of instructions against the definition, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/vec/vec.h"
#include "support/indexing.h"

enum { ROOM = 1024 };

static test_random numbers = {.key = 1};

/* Elements by the definition, in the order of the taps; so one sum does not depend on the others beside
 * it. */
static void check_taps(const sf_vec *set, bool repeat, bool accumulate, int64_t count)
{
    enum { TAPS = 11 };
    float x[ROOM], y[ROOM], to[ROOM];
    int64_t x_at[TAPS], y_at[TAPS];
    for (int n = 0; n < TAPS; n++) {
        x_at[n] = test_draw(&numbers, 0, 199);
        y_at[n] = test_draw(&numbers, 0, 199);
    }
    for (int64_t i = 0; i < 400 + count; i++) {
        x[i] = (float)test_draw(&numbers, -1000, 1000) / 1000;
        y[i] = (float)test_draw(&numbers, -1000, 1000) / 1000;
        to[i] = (float)i;
    }
    sf_taps taps = {TAPS, x, y, x_at, y_at, repeat};
    set->taps[SF_VF32](to, count, &taps, accumulate);
    for (int64_t i = 0; i < count; i++) {
        float sum = 0;
        for (int n = 0; n < TAPS; n++) {
            float product = x[x_at[n] + i] * y[y_at[n] + (repeat ? 0 : i)];
            sum += product;
        }
        assert_true(to[i] == (accumulate ? (float)i + sum : sum));
    }
    for (int64_t i = count; i < count + 64; i++)
        assert_true(to[i] == (float)i);
}

/* Rows of `count` elements, each with its own place in b. */
static void check_taprows(const sf_vec *set, int64_t rows, int64_t count)
{
    enum { TAPS = 7, DST = 40, ROW = 3 };
    double x[ROOM], y[ROOM], to[ROOM];
    int64_t x_at[TAPS], y_at[TAPS];
    for (int n = 0; n < TAPS; n++) {
        x_at[n] = test_draw(&numbers, 0, 199);
        y_at[n] = test_draw(&numbers, 0, 199);
    }
    for (int64_t i = 0; i < 400; i++) {
        x[i] = (double)test_draw(&numbers, -1000, 1000) / 1000;
        y[i] = (double)test_draw(&numbers, -1000, 1000) / 1000;
    }
    for (int64_t i = 0; i < rows * DST; i++)
        to[i] = 99;
    sf_taps taps = {TAPS, x, y, x_at, y_at, true};
    set->taprows[SF_VF64](to, DST, rows, count, &taps, ROW);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < DST; i++) {
            double sum = 0;
            for (int n = 0; n < TAPS; n++) {
                double product = x[x_at[n] + i] * y[y_at[n] + r * ROW];
                sum += product;
            }
            assert_true(to[r * DST + i] == (i < count ? sum : 99));
        }
}

static void test_taps(void **state)
{
    (void)state;
    for (int s = 0; sf_vec_nth(s); s++)
        for (int64_t rows = 0; rows < 20; rows++)
            for (int64_t count = 0; count <= 36; count += 4)
                check_taprows(sf_vec_nth(s), rows, count);
    for (int s = 0; sf_vec_nth(s); s++)
        for (int64_t count = 0; count < 150; count++)
            for (int how = 0; how < 4; how++)
                check_taps(sf_vec_nth(s), how & 1, how & 2, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
