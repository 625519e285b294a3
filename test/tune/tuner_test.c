/* Tuners against brute force: on spaces of many forms, they find the best, or near it, and ask for no point twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "tune/process.h"
#include "tune/tuner.h"

enum { WIDTH = 16, HEIGHT = 13, MOST = WIDTH * HEIGHT };

/* A space of two dimensions, and what its points take. */
typedef struct space {
    const char *name;
    bool (*has)(int x, int y);
    double (*seconds)(int x, int y);
    double (*memory)(int x, int y); /* as a share; above 1 it does not fit */
} space;

static bool has_all(int x, int y)
{
    (void)x;
    (void)y;
    return true;
}

static bool has_polygon(int x, int y)
{
    return y >= x - 6 && y <= x + 6;
}

static double bowl(int x, int y)
{
    return 1 + 0.01 * (x - 5) * (x - 5) + 0.02 * (y - 9) * (y - 9);
}

static double ridge(int x, int y) /* narrow, and askew: what coordinates are bad at */
{
    return 1 + 0.05 * (x - y) * (x - y) + 0.01 * (x - 10) * (x - 10);
}

static double
throughput(int x, int y) /* batch and layers that are computed again, as of Slapo's Figure 10 */
{
    return (1 + 2.0 / (x + 1)) * (1 + 0.25 * y / HEIGHT);
}

static double two_valleys(int x, int y)
{
    return 3 - exp(-0.05 * ((x - 2) * (x - 2) + (y - 3) * (y - 3))) -
           1.3 * exp(-0.05 * ((x - 13) * (x - 13) + (y - 10) * (y - 10)));
}

static double no_memory(int x, int y)
{
    (void)x;
    (void)y;
    return 0.5;
}

static double activations(int x, int y)
{
    return 0.2 + 0.2 * (x + 1) * (1 - 0.9 * y / HEIGHT);
}

static double full(int x, int y)
{
    (void)x;
    (void)y;
    return 2;
}

static const space spaces[] = {
    {"bowl", has_all, bowl, no_memory},
    {"bowl in a polygon", has_polygon, bowl, no_memory},
    {"ridge", has_all, ridge, no_memory},
    {"throughput", has_all, throughput, activations},
    {"throughput in a polygon", has_polygon, throughput, activations},
    {"two valleys", has_all, two_valleys, no_memory},
    {"bowl, limited", has_all, bowl, activations},
};
enum { SPACES = sizeof spaces / sizeof *spaces };

typedef struct laid_out {
    sf_points points;
    int at[2 * MOST];
    double seconds[MOST], memory[MOST], best;
} laid_out;

static void lay_out(const space *of, laid_out *out)
{
    static const int places[] = {WIDTH, HEIGHT};
    static const bool ordered[] = {true, true};
    size_t count = 0;
    out->best = (double)INFINITY;
    for (int x = 0; x < WIDTH; x++)
        for (int y = 0; y < HEIGHT; y++) {
            if (!of->has(x, y))
                continue;
            out->at[2 * count] = x;
            out->at[2 * count + 1] = y;
            out->memory[count] = of->memory(x, y);
            out->seconds[count] = out->memory[count] > 1 ? (double)INFINITY : of->seconds(x, y);
            out->best = fmin(out->best, out->seconds[count]);
            count++;
        }
    out->points = (sf_points){
        .count = count, .ndims = 2, .places = places, .ordered = ordered, .at = out->at};
}

/* Tunes, at most so many trials; how many it took until the best so far was within a share of the best of all, or 0. */
static int tune(const laid_out *in, const char *name, int trials, double within, int *asked)
{
    sf_arena arena = {0};
    bool seen[MOST] = {false};
    int until = 0;
    size_t point;
    sf_tuner *tuner = sf_tuner_new(name, &in->points, &arena);
    *asked = 0;
    while (*asked < trials && sf_tuner_ask(tuner, &point)) {
        assert_true(point < in->points.count);
        assert_false(seen[point]);
        seen[point] = true;
        sf_tuner_observe(tuner, point,
                         (sf_observed){.seconds = in->seconds[point], .memory = in->memory[point]});
        ++*asked;
        if (until == 0 && isfinite(in->seconds[point]) &&
            in->seconds[point] <= in->best * (1 + within))
            until = *asked;
    }
    size_t best = sf_tuner_best(tuner);
    assert_true(until == 0 ||
                (best < in->points.count && in->seconds[best] <= in->best * (1 + within)));
    sf_arena_free(&arena);
    return until;
}

static void test_exhaustive(void **state)
{
    (void)state;
    for (int i = 0; i < SPACES; i++) {
        laid_out in;
        int asked;
        lay_out(&spaces[i], &in);
        assert_true(tune(&in, "exhaustive", MOST, 0, &asked) > 0);
        assert_int_equal(asked, in.points.count);
    }
}

/* The model comes within a percent of the best in a few dozen trials of hundreds. */
static void test_model(void **state)
{
    (void)state;
    for (int i = 0; i < SPACES; i++) {
        laid_out in;
        int asked;
        lay_out(&spaces[i], &in);
        int model = tune(&in, "model", 40, 0.01, &asked);
        print_message("%-24s model %d of %zu\n", spaces[i].name, model, in.points.count);
        assert_in_range(model, 1, 40);
    }
}

static void test_nothing_fits(void **state)
{
    (void)state;
    static const space none = {"full", has_all, bowl, full};
    laid_out in;
    int asked;
    lay_out(&none, &in);
    for (int a = 0; sf_tuner_name(a); a++) {
        assert_int_equal(tune(&in, sf_tuner_name(a), MOST, 0, &asked), 0);
        assert_int_equal(asked, in.points.count);
    }
    sf_arena arena = {0};
    assert_null(sf_tuner_new("luck", &in.points, &arena));
    sf_arena_free(&arena);
}

/* A process goes through what it was told, and knows how little it knows elsewhere. */
static void test_process(void **state)
{
    (void)state;
    laid_out in;
    sf_arena arena = {0};
    size_t seen[20];
    double values[20], mean, deviation;
    lay_out(&spaces[0], &in);
    for (size_t i = 0; i < 20; i++) {
        seen[i] = i * 10;
        values[i] = in.seconds[seen[i]];
    }
    const sf_process *process = sf_process_new(&in.points, 20, seen, values, &arena);
    for (size_t i = 0; i < 20; i++) {
        sf_process_expect(process, seen[i], &mean, &deviation);
        assert_true(fabs(mean - values[i]) < 0.05);
    }
    for (size_t p = 0; p < in.points.count; p++) {
        sf_process_expect(process, p, &mean, &deviation);
        assert_true(fabs(mean - in.seconds[p]) < 5 * deviation + 0.2);
    }
    assert_true(fabs(sf_normal_below(0) - 0.5) < 1e-12 &&
                fabs(sf_normal_below(1.96) - 0.975) < 1e-4);
    sf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exhaustive),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_nothing_fits),
        cmocka_unit_test(test_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
