/* Problems of choice through the public interface: built, solved, saved; and when memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sheaf/solve.h"

enum { NODES = 7, STRATEGIES = 3 };

static int64_t mixed(int a, int b)
{
    return (a * 37 + b * 101 + a * b * 13) % 50;
}

/* A cycle with chords and a limit: reductions alone do not solve it. Stops at the first failure. */
static sf_status build(sf_choices *choices, sf_diag *diag)
{
    int64_t costs[STRATEGIES * STRATEGIES];
    sf_status status = SF_OK;
    for (int v = 0; v < NODES && status == SF_OK; v++) {
        for (int i = 0; i < STRATEGIES; i++)
            costs[i] = mixed(v, i);
        status = sf_choices_add_node(choices, STRATEGIES, costs, diag);
        for (int i = 0; i < STRATEGIES; i++)
            costs[i] = 10 - mixed(i, v) / 5;
        if (status == SF_OK)
            status = sf_choices_add_use(choices, (uint32_t)v, v, v + 3, costs, diag);
    }
    for (int v = 0; v < NODES && status == SF_OK; v++)
        for (int step = 1; step < 4 && status == SF_OK; step++) {
            for (int i = 0; i < STRATEGIES * STRATEGIES; i++)
                costs[i] = mixed(v + i, step * 7 + i);
            status = sf_choices_add_edge(choices, (uint32_t)v, (uint32_t)((v + step) % NODES),
                                         costs, diag);
        }
    sf_choices_set_limit(choices, 22);
    return status;
}

static sf_status build_and_solve(sf_diag *diag, sf_solution **out)
{
    sf_choices *choices = NULL;
    sf_status status = sf_choices_new(diag, &choices);
    if (status != SF_OK)
        return status;
    status = build(choices, diag);
    if (status == SF_OK)
        status = sf_choices_solve(
            choices, &SF_OPTIONS(sf_solve_options, .work = 1000000, .threads = 1), diag, out);
    sf_choices_free(choices);
    return status;
}

static void test_solve(void **state)
{
    (void)state;
    sf_diag *diag = sf_diag_new();
    sf_solution *solution;
    assert_int_equal(build_and_solve(diag, &solution), SF_OK);
    assert_true(solution->feasible);
    assert_int_equal(solution->stop, SF_STOP_OPTIMAL);
    assert_int_equal(solution->nodes, NODES);
    assert_int_equal(solution->cost, solution->bound);
    sf_solution_free(solution);
    sf_diag_free(diag);
}

/* A problem may be solved, extended, and solved once more. */
static void test_again(void **state)
{
    (void)state;
    sf_diag *diag = sf_diag_new();
    sf_choices *choices;
    sf_solution *solution;
    assert_int_equal(sf_choices_new(diag, &choices), SF_OK);
    for (int64_t round = 1; round <= 3; round++) {
        assert_int_equal(sf_choices_add_node(choices, 2, (int64_t[]){7, round}, diag), SF_OK);
        assert_int_equal(sf_choices_solve(choices,
                                          &(sf_solve_options){.size = sizeof(sf_solve_options)},
                                          diag, &solution),
                         SF_OK);
        assert_int_equal(solution->cost, round * (round + 1) / 2);
        assert_int_equal(solution->nodes, sf_choices_nodes(choices));
        sf_solution_free(solution);
    }
    sf_choices_free(choices);
    sf_diag_free(diag);
}

static void test_refused(void **state)
{
    (void)state;
    sf_diag *diag = sf_diag_new();
    sf_choices *choices;
    assert_int_equal(sf_choices_new(diag, &choices), SF_OK);
    assert_int_equal(sf_choices_add_node(choices, 0, (int64_t[]){4}, diag), SF_EINPUT);
    assert_int_equal(sf_choices_add_node(choices, 1, (int64_t[]){4}, diag), SF_OK);
    assert_int_equal(sf_choices_add_node(choices, 1, (int64_t[]){SF_FORBIDDEN - 1}, diag),
                     SF_EINPUT);
    assert_int_equal(sf_choices_add_use(choices, 1, 0, 1, (int64_t[]){1}, diag), SF_EINPUT);
    assert_int_equal(sf_choices_add_use(choices, 0, 2, 1, (int64_t[]){1}, diag), SF_EINPUT);
    assert_int_equal(sf_choices_add_edge(choices, 0, 1, (int64_t[]){1}, diag), SF_EINPUT);
    assert_int_equal(sf_choices_nodes(choices), 1);
    sf_choices_free(choices);
    sf_choices *loaded;
    assert_int_equal(sf_choices_load("examples/choices.json", diag, &loaded), SF_OK);
    assert_int_equal(sf_choices_add_node(loaded, 1, (int64_t[]){4}, diag), SF_EUSAGE);
    sf_choices_free(loaded);
    sf_diag_free(diag);
}

/* Whichever allocation fails: a status, and nothing is lost. */
static void test_memory(void **state)
{
    (void)state;
    size_t before = sf_mem_live();
    sf_status status = SF_ENOMEM;
    for (long passes = 0; status != SF_OK; passes++) {
        sf_diag *diag = sf_diag_new();
        sf_solution *solution = NULL;
        sf_mem_fail_after(passes);
        status = build_and_solve(diag, &solution);
        sf_mem_fail_after(-1);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        sf_solution_free(solution);
        sf_diag_free(diag);
        assert_int_equal(sf_mem_live(), before);
        assert_true(passes < 100000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_solve),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
