/* Bounds hold whatever messages and multipliers they come from, and are tight where theory says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solve/dual/bundle.h"
#include "support/choices.h"

enum { SEEDS = 150 };

static double noise(uint64_t *state, double range)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) * 0x1p-53 - 0.5) * range;
}

typedef void each_problem(const sf_problem *problem, const sf_shape *shape, uint64_t seed,
                          sf_arena *arena);

static void for_all(each_problem *test)
{
    for (int s = 0; s < sf_shape_count; s++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            sf_arena arena = {0};
            sf_problem problem;
            sf_draw_problem(&sf_shapes[s], seed, &arena, &problem);
            test(&problem, &sf_shapes[s], seed, &arena);
            sf_arena_free(&arena);
        }
}

/* The bounds of strategies, by asking for each the optimum of those that take it: slow, and sure. */
static void check_strategies(const sf_problem *problem, const int64_t *bound, sf_arena *arena)
{
    int64_t *cost =
        sf_arena_copy(arena, problem->cost, problem->first[problem->nnodes] * sizeof *cost);
    sf_problem one = *problem;
    one.cost = cost;
    for (uint32_t v = 0; v < problem->nnodes; v++)
        for (uint32_t s = problem->first[v]; s < problem->first[v + 1]; s++) {
            for (uint32_t other = problem->first[v]; other < problem->first[v + 1]; other++)
                cost[other] = other == s ? problem->cost[other] : SF_FORBIDDEN;
            assert_true(bound[s] <= sf_enumerate(&one, arena));
            memcpy(cost + problem->first[v], problem->cost + problem->first[v],
                   sf_problem_count(problem, v) * sizeof *cost);
        }
}

/* Random messages and multipliers: a poor bound, and a true one. */
static void prove_noise(const sf_problem *problem, const sf_shape *shape, uint64_t seed,
                        sf_arena *arena)
{
    sf_tables tables;
    sf_dual dual;
    uint64_t state = seed;
    int64_t *strategies = SF_ARRAY(arena, problem->first[problem->nnodes], int64_t);
    sf_tables_init(&tables, problem, arena);
    sf_dual_init(&dual, &tables, arena);
    for (uint32_t t = 0; t < problem->ntimes; t += 1 + (uint32_t)(seed % 2)) {
        uint32_t slot = sf_watch_add(&dual.watch, t);
        dual.multiplier[slot] = 5 + noise(&state, 10);
    }
    for (size_t m = 0; m < sf_dual_messages(&dual); m++)
        dual.messages[m] = noise(&state, shape->range);
    assert_true(sf_dual_prove(&dual, strategies, arena) <= sf_enumerate(problem, arena));
    if (seed < 20)
        check_strategies(problem, strategies, arena);
}

static void test_any_messages(void **state)
{
    (void)state;
    for_all(prove_noise);
}

static void prove_well(const sf_problem *problem, const sf_shape *shape, uint64_t seed,
                       sf_arena *arena)
{
    int64_t *strategies = SF_ARRAY(arena, problem->first[problem->nnodes], int64_t);
    double *multiplier = SF_ARRAY(arena, problem->ntimes + 1, double);
    int64_t best = sf_enumerate(problem, arena), work = 0;
    int64_t bound = sf_dual_bound(problem, multiplier, 60, INT64_MAX, strategies, &work, arena);
    if (bound > best)
        fail_msg("%s, seed %d: bound %lld, optimum %lld", shape->name, (int)seed, (long long)bound,
                 (long long)best);
    assert_true(work > 0 || problem->nedges == 0);
    for (uint32_t t = 0; t < problem->ntimes; t++)
        assert_true(multiplier[t] >= 0);
    if (seed < 20)
        check_strategies(problem, strategies, arena);
}

static void test_found_messages(void **state)
{
    (void)state;
    for_all(prove_well);
}

/* On trees without a limit the relaxation is exact. */
static void test_trees(void **state)
{
    (void)state;
    sf_shape shape = {"tree", 9, 4, 0, 0, 1000, 0, 1, true};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sf_arena arena = {0};
        sf_problem problem;
        shape.density = 88; /* 8 edges for 9 nodes */
        sf_draw_problem(&shape, seed, &arena, &problem);
        assert_int_equal(sf_dual_bound(&problem, NULL, 200, INT64_MAX, NULL, NULL, &arena),
                         sf_enumerate(&problem, &arena));
        sf_arena_free(&arena);
    }
}

/* n nodes that cost 0 and use 2, or cost 10 and use 0, under a limit of n: the best price of a unit is 5,
 * half of them pay, and the bound says so exactly. */
static void test_multiplier(void **state)
{
    (void)state;
    enum { NODES = 40 };
    sf_arena arena = {0};
    sf_problem_builder builder = {.arena = &arena};
    sf_problem problem;
    for (uint32_t v = 0; v < NODES; v++) {
        sf_problem_add_node(&builder, 2, (int64_t[]){0, 10}, NULL);
        sf_problem_add_use(&builder, v, 0, 1 + v % 3, (int64_t[]){2, 0}, NULL);
    }
    sf_problem_set_limit(&builder, NODES);
    assert_int_equal(sf_problem_finish(&builder, &problem, NULL), SF_OK);
    double *multiplier = SF_ARRAY(&arena, problem.ntimes, double);
    assert_in_range(sf_dual_bound(&problem, multiplier, 400, INT64_MAX, NULL, NULL, &arena),
                    5 * NODES - 2, 5 * NODES);
    sf_arena_free(&arena);
}

/* What is watched, against the whole profile. */
static void watch_all(const sf_problem *problem, const sf_shape *shape, uint64_t seed,
                      sf_arena *arena)
{
    (void)shape;
    sf_watch watch;
    uint32_t *choice = SF_ARRAY(arena, problem->nnodes, uint32_t);
    int64_t *usage = SF_ARRAY(arena, problem->ntimes, int64_t);
    int64_t *watched = SF_ARRAY(arena, problem->ntimes, int64_t);
    for (uint32_t v = 0; v < problem->nnodes; v++)
        choice[v] = (uint32_t)((seed + v) % sf_problem_count(problem, v));
    sf_problem_usage(problem, choice, usage);
    sf_watch_init(&watch, problem, arena);
    for (uint32_t n = 0; n < problem->ntimes; n++) {
        uint32_t point = (uint32_t)((n * 7 + seed) % problem->ntimes);
        uint32_t slot = sf_watch_add(&watch, point);
        assert_true(slot < watch.count);
        assert_int_equal(watch.point[slot], point);
        assert_int_equal(sf_watch_add(&watch, point), slot);
    }
    sf_watch_usage(&watch, choice, watched);
    for (uint32_t slot = 0; slot < watch.count; slot++) {
        assert_int_equal(watched[slot], usage[watch.point[slot]]);
        assert_int_equal(sf_watch_usage_at(problem, choice, watch.point[slot]), watched[slot]);
    }
}

static void test_watch(void **state)
{
    (void)state;
    for_all(watch_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_messages), cmocka_unit_test(test_found_messages),
        cmocka_unit_test(test_trees),        cmocka_unit_test(test_multiplier),
        cmocka_unit_test(test_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
