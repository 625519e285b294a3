/* Starts are what they say they are, mostly the best there is on small problems, and improving one never
 * makes it worse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solve/grow.h"
#include "solve/start.h"
#include "support/choices.h"

typedef struct tally {
    int problems, solvable, found, best;
} tally;

static void check_start(const sf_problem *problem, const sf_start *start, const uint32_t *choice,
                        int64_t least, sf_arena *arena)
{
    for (uint32_t v = 0; v < problem->nnodes; v++)
        assert_true(choice[v] < sf_problem_count(problem, v));
    sf_verdict verdict = sf_problem_judge(problem, choice, arena);
    assert_int_equal(verdict.feasible, start->feasible);
    if (start->feasible) {
        assert_int_equal(verdict.cost, start->cost);
        assert_true(start->cost >= least);
    }
}

/* No node alone can do better, though those whose neighbours stay as they are are looked at once. */
static void check_settled(const sf_problem *problem, sf_arena *arena)
{
    uint32_t *choice = SF_ARRAY(arena, problem->nnodes, uint32_t);
    sf_grower grower;
    sf_grower_init(&grower, problem, arena);
    sf_grow(&grower, 0, sf_problem_count(problem, 0) - 1, choice);
    sf_grow_settle(&grower, choice);
    int64_t value = sf_grow_value(&grower, choice);
    for (uint32_t v = 0; v < problem->nnodes; v++) {
        uint32_t settled = choice[v];
        for (choice[v] = 0; choice[v] < sf_problem_count(problem, v); choice[v]++)
            assert_true(sf_grow_value(&grower, choice) >= value);
        choice[v] = settled;
    }
}

/* From the first strategies of every second node. */
static void check_improvement(const sf_problem *problem, int64_t least, sf_arena *arena)
{
    bool *fixed = SF_ARRAY(arena, problem->nnodes, bool);
    uint32_t *choice = SF_ARRAY(arena, problem->nnodes, uint32_t);
    uint32_t *grown = SF_ARRAY(arena, problem->nnodes, uint32_t);
    for (uint32_t v = 0; v < problem->nnodes; v += 2)
        fixed[v] = true;
    sf_grower grower;
    sf_grower_init(&grower, problem, arena);
    sf_grow_rest(&grower, fixed, grown);
    for (uint32_t v = 0; v < problem->nnodes; v += 2)
        assert_int_equal(grown[v], 0);
    sf_verdict before = sf_problem_judge(problem, grown, arena);
    sf_start start = sf_start_improve(problem, fixed, choice);
    check_start(problem, &start, choice, least, arena);
    if (before.feasible)
        assert_true(start.feasible && start.cost <= before.cost);
}

static void check(const sf_shape *shape, uint64_t seed, tally *t)
{
    sf_arena arena = {0};
    sf_problem problem;
    sf_draw_problem(shape, seed, &arena, &problem);
    int64_t least = sf_enumerate(&problem, &arena);
    uint32_t *choice = SF_ARRAY(&arena, problem.nnodes, uint32_t);
    sf_start start = sf_start_find(&problem, INT64_MAX, choice);
    check_start(&problem, &start, choice, least, &arena);
    check_settled(&problem, &arena);
    check_improvement(&problem, least, &arena);
    t->problems++;
    t->solvable += least < SF_FORBIDDEN;
    t->found += start.feasible;
    t->best += start.feasible && start.cost == least;
    sf_arena_free(&arena);
}

static void test_small(void **state)
{
    (void)state;
    tally t = {0};
    for (int s = 0; s < sf_shape_count; s++)
        for (uint64_t seed = 0; seed < 300; seed++)
            check(&sf_shapes[s], seed, &t);
    assert_true(t.found * 10 >= t.solvable * 9);
    assert_true(t.best * 10 >= t.found * 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
