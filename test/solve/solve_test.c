/* The whole solver against judges that know nothing of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solve/solve.h"
#include "support/choices.h"

static sf_solve_result solve(const sf_problem *problem, const sf_solve_options *options,
                             int threads, sf_arena *arena)
{
    sf_solve_result result;
    sf_threads *pool = threads ? sf_threads_new(threads) : NULL;
    assert_int_equal(sf_solve(problem, options, pool, arena, &result, NULL), SF_OK);
    if (pool)
        sf_threads_free(pool);
    return result;
}

/* Cost and bound are the judge's, and the choice is worth what the result says. */
static void check(const sf_problem *problem, int64_t least, const char *name, uint64_t seed)
{
    sf_arena arena = {0};
    sf_solve_result result =
        solve(problem, &SF_OPTIONS(sf_solve_options, .seconds = 20), 0, &arena);
    int64_t cost = result.feasible ? result.cost : SF_FORBIDDEN;
    if (cost != least || result.bound != least)
        fail_msg("%s, seed %d: cost %lld, bound %lld, judge %lld", name, (int)seed, (long long)cost,
                 (long long)result.bound, (long long)least);
    assert_int_equal(result.stop, least < SF_FORBIDDEN ? SF_STOP_OPTIMAL : SF_STOP_INFEASIBLE);
    sf_verdict verdict = sf_problem_judge(problem, result.choice, &arena);
    assert_int_equal(verdict.feasible, result.feasible);
    if (result.feasible)
        assert_int_equal(verdict.cost, result.cost);
    sf_arena_free(&arena);
}

static void test_enumeration(void **state)
{
    (void)state;
    for (int s = 0; s < sf_shape_count; s++)
        for (uint64_t seed = 0; seed < 600; seed++) {
            sf_arena arena = {0};
            sf_problem problem;
            sf_draw_problem(&sf_shapes[s], seed, &arena, &problem);
            check(&problem, sf_enumerate(&problem, &arena), sf_shapes[s].name, seed);
            sf_arena_free(&arena);
        }
}

static void test_cbc(void **state)
{
    (void)state;
    for (int s = 0; s < sf_shape_count; s++)
        for (uint64_t seed = 1000; seed < 1020; seed++) {
            sf_arena arena = {0};
            sf_problem problem;
            sf_shape larger = sf_shapes[s];
            int64_t least;
            larger.nodes *= 2;
            sf_draw_problem(&larger, seed, &arena, &problem);
            if (!sf_ask_cbc(&problem, 60, &least)) {
                sf_arena_free(&arena);
                print_message("CBC is not in this build\n");
                skip();
            }
            check(&problem, least, sf_shapes[s].name, seed);
            sf_arena_free(&arena);
        }
}

/* Nodes in a row with skips, as a model's layers give them; without a limit. */
static void draw_chain(uint32_t nodes, uint32_t strategies, sf_arena *arena, sf_problem *out)
{
    sf_problem_builder builder = {.arena = arena};
    int64_t values[256];
    uint64_t state = 1;
    for (uint32_t v = 0; v < nodes; v++) {
        for (uint32_t i = 0; i < strategies; i++)
            values[i] =
                (int64_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 54);
        assert_int_equal(sf_problem_add_node(&builder, strategies, values, NULL), SF_OK);
    }
    for (uint32_t v = 1; v < nodes; v++)
        for (uint32_t back = 1; back <= (v % 3 == 0 && v > 2 ? 3u : 1u); back += 2) {
            for (uint32_t i = 0; i < strategies * strategies; i++)
                values[i] =
                    (int64_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 54);
            assert_int_equal(sf_problem_add_edge(&builder, v - back, v, values, NULL), SF_OK);
        }
    assert_int_equal(sf_problem_finish(&builder, out, NULL), SF_OK);
}

static void test_chain(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_problem problem;
    draw_chain(1000, 12, &arena, &problem);
    sf_solve_result result =
        solve(&problem, &SF_OPTIONS(sf_solve_options, .seconds = 60), 0, &arena);
    assert_int_equal(result.stop, SF_STOP_OPTIMAL);
    assert_int_equal(result.cost, result.bound);
    sf_arena_free(&arena);
}

/* Under a budget of work the answer is the same for every number of threads, proven or not. */
static void test_reproducible(void **state)
{
    (void)state;
    sf_shape shape = {"large", 150, 7, 300, 5, 1000, 45, 60, false};
    for (uint64_t seed = 0; seed < 3; seed++) {
        sf_arena arena = {0};
        sf_problem problem;
        sf_draw_problem(&shape, seed, &arena, &problem);
        sf_solve_options options = {.size = sizeof options, .work = 20 * 1000 * 1000, .seed = seed};
        sf_solve_result first = solve(&problem, &options, 1, &arena);
        for (int threads = 2; threads <= 3; threads++) {
            sf_solve_result again = solve(&problem, &options, threads, &arena);
            assert_int_equal(again.stop, first.stop);
            assert_int_equal(again.cost, first.cost);
            assert_int_equal(again.bound, first.bound);
            assert_int_equal(again.work, first.work);
            assert_memory_equal(again.choice, first.choice, problem.nnodes * sizeof *first.choice);
        }
        sf_arena_free(&arena);
    }
}

static void test_infeasible(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_problem_builder builder = {.arena = &arena};
    sf_problem problem;
    for (uint32_t v = 0; v < 2; v++) {
        sf_problem_add_node(&builder, 2, (int64_t[]){1, 2}, NULL);
        sf_problem_add_use(&builder, v, 10 + v, 20, (int64_t[]){9, 6}, NULL);
    }
    sf_problem_set_limit(&builder, 10);
    assert_int_equal(sf_problem_finish(&builder, &problem, NULL), SF_OK);
    sf_solve_result result =
        solve(&problem, &SF_OPTIONS(sf_solve_options, .seconds = 1), 0, &arena);
    assert_int_equal(result.stop, SF_STOP_INFEASIBLE);
    assert_false(result.feasible);
    assert_int_equal(result.bound, SF_FORBIDDEN);
    assert_int_equal(result.time, 11);
    assert_int_equal(result.over, 2);
    sf_arena_free(&arena);
}

static bool stop_at_once(void *context, const sf_event *event)
{
    assert_true(event->kind == SF_EVENT_SOLVE && event->solve);
    ++*(int *)context;
    return false;
}

static void test_options(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_problem problem;
    sf_solve_result result;
    sf_draw_problem(&sf_shapes[0], 1, &arena, &problem);
    assert_int_equal(sf_solve(&problem, &SF_OPTIONS(sf_solve_options, .seconds = -1), NULL, &arena,
                              &result, NULL),
                     SF_EUSAGE);
    assert_int_equal(
        sf_solve(&problem, &SF_OPTIONS(sf_solve_options, .gap = -1), NULL, &arena, &result, NULL),
        SF_EUSAGE);
    sf_shape shape = {"large", 300, 9, 400, 0, 1000, 50, 60, false};
    int calls = 0;
    sf_draw_problem(&shape, 5, &arena, &problem);
    sf_solve_options options = {
        .size = sizeof options, .seconds = 60, .listener = stop_at_once, .context = &calls};
    result = solve(&problem, &options, 0, &arena);
    assert_int_equal(result.stop, SF_STOP_ASKED);
    assert_int_equal(calls, 1);
    sf_arena_free(&arena);
}

static void test_empty(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_problem_builder builder = {.arena = &arena};
    sf_problem problem;
    sf_problem_set_limit(&builder, 0);
    assert_int_equal(sf_problem_finish(&builder, &problem, NULL), SF_OK);
    sf_solve_result result =
        solve(&problem, &SF_OPTIONS(sf_solve_options, .seconds = 1), 0, &arena);
    assert_int_equal(result.stop, SF_STOP_OPTIMAL);
    assert_int_equal(result.cost, 0);
    sf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enumeration), cmocka_unit_test(test_cbc),
        cmocka_unit_test(test_chain),       cmocka_unit_test(test_reproducible),
        cmocka_unit_test(test_infeasible),  cmocka_unit_test(test_options),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
