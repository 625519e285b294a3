/* Trees against enumeration; the search: feasible, no better than the optimum, the same on any threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solve/search/local_search.h"
#include "solve/search/tree.h"
#include "support/choices.h"

enum { WORK = 16 * 1000 * 1000 };

static sf_solve_found search(const sf_problem *problem, int threads, int64_t work, uint32_t *choice)
{
    sf_solve_options options = {.size = sizeof options, .work = work, .seed = 7};
    sf_threads *pool = threads > 1 ? sf_threads_new(threads) : NULL;
    sf_budget budget = {
        .options = &options, .deadline = HUGE_VAL, .work_limit = work, .threads = pool};
    sf_solve_found found = {.bound = INT64_MIN};
    sf_search(problem, &budget, &found, choice);
    if (pool)
        sf_threads_free(pool);
    return found;
}

static void test_small(void **state)
{
    (void)state;
    int missed = 0, feasible = 0;
    for (int s = 0; s < sf_shape_count; s++)
        for (uint64_t seed = 0; seed < 12; seed++) {
            sf_arena arena = {0};
            sf_problem problem;
            sf_draw_problem(&sf_shapes[s], seed, &arena, &problem);
            uint32_t *choice = SF_ARRAY(&arena, problem.nnodes, uint32_t);
            sf_solve_found found = search(&problem, 1, WORK / 4, choice);
            int64_t best = sf_enumerate(&problem, &arena);
            assert_true(found.bound <= best);
            if (found.feasible) {
                sf_verdict verdict = sf_problem_judge(&problem, choice, &arena);
                assert_true(verdict.feasible);
                assert_int_equal(verdict.cost, found.cost);
                assert_true(found.cost >= best);
            }
            feasible += best < SF_FORBIDDEN;
            missed += best < SF_FORBIDDEN && (!found.feasible || found.cost > best);
            sf_arena_free(&arena);
        }
    assert_true(feasible > 60);
    assert_true(missed * 50 < feasible); /* it proves nothing, but it should hardly miss */
}

static void test_threads(void **state)
{
    (void)state;
    sf_shape shape = {"large", 200, 8, 250, 5, 1000, 55, 60, false};
    for (uint64_t seed = 0; seed < 2; seed++) {
        sf_arena arena = {0};
        sf_problem problem;
        sf_draw_problem(&shape, seed, &arena, &problem);
        size_t size = problem.nnodes * sizeof(uint32_t);
        uint32_t *choice = sf_arena_alloc(&arena, size), *again = sf_arena_alloc(&arena, size);
        sf_solve_found found = search(&problem, 1, WORK, choice);
        for (int threads = 2; threads < 8; threads += 2) {
            sf_solve_found other = search(&problem, threads, WORK, again);
            assert_int_equal(other.feasible, found.feasible);
            assert_int_equal(other.cost, found.cost);
            assert_int_equal(other.bound, found.bound);
            assert_memory_equal(choice, again, size);
        }
        sf_arena_free(&arena);
    }
}

/* An answer that is given is never lost. */
static void test_start(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        sf_arena arena = {0};
        sf_problem problem;
        sf_draw_problem(&sf_shapes[6], seed, &arena, &problem);
        uint32_t *choice = SF_ARRAY(&arena, problem.nnodes, uint32_t);
        sf_solve_found first = search(&problem, 1, WORK / 4, choice);
        if (first.feasible) {
            sf_solve_options options = {.size = sizeof options, .work = 1};
            sf_budget budget = {.options = &options, .deadline = HUGE_VAL, .work_limit = 1};
            sf_solve_found again = {.feasible = true, .cost = first.cost, .bound = first.bound};
            sf_search(&problem, &budget, &again, choice);
            assert_true(again.feasible && again.cost <= first.cost && again.bound >= first.bound);
            assert_int_equal(sf_problem_judge(&problem, choice, &arena).cost, again.cost);
        }
        sf_arena_free(&arena);
    }
}

/* The cost of an assignment at the tables' costs, by the tables. */
static double table_cost(const sf_tables *tables, const uint32_t *choice)
{
    const sf_problem *problem = tables->problem;
    double sum = 0;
    for (uint32_t v = 0; v < problem->nnodes; v++)
        sum += tables->unary[problem->first[v] + choice[v]];
    for (uint32_t e = 0; e < problem->nedges; e++) {
        const sf_edge *edge = &problem->edges[e];
        uint32_t columns = sf_problem_count(problem, edge->b);
        sum += (double)sf_tables_view(tables, e,
                                      edge->b)[(size_t)choice[edge->a] * columns + choice[edge->b]];
    }
    return sum;
}

/* The least cost over all strategies of the tree's nodes from the n-th on. */
static double least_over(const sf_tree *tree, uint32_t n, uint32_t *choice)
{
    if (n == tree->count)
        return table_cost(tree->tables, choice);
    uint32_t v = tree->node[n], before = choice[v];
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < sf_problem_count(tree->tables->problem, v); i++) {
        choice[v] = i;
        least = fmin(least, least_over(tree, n + 1, choice));
    }
    choice[v] = before;
    return least;
}

static void check_tree(sf_tree *tree, uint32_t *choice, sf_arena *arena)
{
    const sf_tables *tables = tree->tables;
    const sf_problem *problem = tables->problem;
    uint32_t root = tree->node[0], *moved = SF_ARRAY(arena, problem->nnodes, uint32_t);
    double before = table_cost(tables, choice);
    sf_tree_solve(tree, tables->unary, choice);
    for (uint32_t i = 0; i < sf_problem_count(problem, root); i++) {
        uint32_t kept = choice[root];
        bool changed = sf_tree_pick(tree, i, choice);
        memcpy(moved, choice, problem->nnodes * sizeof *moved);
        for (uint32_t n = 0; n < tree->count; n++)
            moved[tree->node[n]] = tree->picked[tree->node[n]];
        assert_int_equal(changed, memcmp(moved, choice, problem->nnodes * sizeof *moved) != 0);
        double after = table_cost(tables, moved);
        int64_t change = sf_tree_change(tree, choice, (int64_t)tables->forbidden);
        assert_true(fabs((double)change - (after - before)) < 0.5);
        choice[root] = i;
        assert_true(fabs(after - least_over(tree, 1, choice)) < 0.5);
        choice[root] = kept;
    }
}

static void test_trees(void **state)
{
    (void)state;
    for (int s = 0; s < sf_shape_count; s++)
        for (uint64_t seed = 0; seed < 60; seed++) {
            sf_arena arena = {0};
            sf_problem problem;
            sf_tables tables;
            sf_tree tree;
            sf_dice dice = {seed};
            sf_draw_problem(&sf_shapes[s], seed, &arena, &problem);
            sf_tables_init(&tables, &problem, &arena);
            sf_tree_init(&tree, &tables, &arena);
            uint32_t *choice = SF_ARRAY(&arena, problem.nnodes, uint32_t);
            for (uint32_t v = 0; v < problem.nnodes; v++)
                choice[v] = sf_dice_below(&dice, sf_problem_count(&problem, v));
            for (uint32_t root = 0; root < problem.nnodes; root++) {
                sf_tree_grow(&tree, root, 1 + sf_dice_below(&dice, 5), &dice);
                assert_int_equal(tree.node[0], root);
                check_tree(&tree, choice, &arena);
            }
            sf_arena_free(&arena);
        }
}

static void test_dice(void **state)
{
    (void)state;
    enum { ROLLS = 200000 };
    sf_dice dice = {3};
    double sum = 0, square = 0, least = 1;
    for (int i = 0; i < ROLLS; i++) {
        double wait = sf_dice_wait(&dice);
        sum += wait;
        square += wait * wait;
        least = fmin(least, wait);
        assert_true(sf_dice_below(&dice, 7) < 7);
    }
    assert_true(least > -1e-4);
    assert_true(fabs(sum / ROLLS - 1) < 0.02);
    assert_true(fabs(square / ROLLS - 2) < 0.06);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dice),    cmocka_unit_test(test_trees), cmocka_unit_test(test_small),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
