/* Reductions keep the optimum, and every answer of what is left lifts to one of the same cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solve/reduce/components.h"
#include "solve/reduce/eliminate.h"
#include "solve/reduce/reductions.h"
#include "support/choices.h"

/* Counts through all assignments; false after the last. */
static bool next_choice(const sf_problem *problem, uint32_t *choice)
{
    for (uint32_t v = 0; v < problem->nnodes; v++) {
        if (++choice[v] < sf_problem_count(problem, v))
            return true;
        choice[v] = 0;
    }
    return false;
}

/* All answers of the reduced problem, feasible ones, lifted: feasible, and worth the same. */
static int64_t lift_all(const sf_problem *whole, const sf_network *net, sf_arena *arena)
{
    sf_problem rest;
    uint32_t *node_of;
    int64_t least = SF_FORBIDDEN;
    sf_net_problem(net, arena, &rest, &node_of);
    uint32_t *choice = SF_ARRAY(arena, rest.nnodes, uint32_t);
    uint32_t *lifted = SF_ARRAY(arena, whole->nnodes, uint32_t);
    do {
        sf_verdict here = sf_problem_judge(&rest, choice, arena);
        if (!here.feasible)
            continue;
        sf_net_lift(net, node_of, rest.nnodes, choice, lifted);
        sf_verdict there = sf_problem_judge(whole, lifted, arena);
        assert_true(there.feasible);
        assert_int_equal(there.cost, here.cost);
        least = here.cost < least ? here.cost : least;
    } while (next_choice(&rest, choice));
    return least;
}

static void test_reduce(void **state)
{
    (void)state;
    for (int s = 0; s < sf_shape_count; s++) {
        uint32_t before = 0, after = 0;
        for (uint64_t seed = 0; seed < 600; seed++) {
            sf_arena arena = {0};
            sf_problem problem;
            sf_network net;
            sf_draw_problem(&sf_shapes[s], seed, &arena, &problem);
            sf_network_init(&net, &problem, &arena);
            sf_reduce(&net);
            int64_t least = net.infeasible ? SF_FORBIDDEN : lift_all(&problem, &net, &arena);
            if (least != sf_enumerate(&problem, &arena))
                fail_msg("%s, seed %d", sf_shapes[s].name, (int)seed);
            before += problem.nnodes;
            for (uint32_t v = 0; v < problem.nnodes; v++)
                after += !net.infeasible && net.nodes[v].alive;
            sf_arena_free(&arena);
        }
        print_message("%s: %u nodes, %u left\n", sf_shapes[s].name, before, after);
        assert_true(after < before);
    }
}

/* Each rule by itself, on networks that no other rule has touched. */
static void test_single_rules(void **state)
{
    (void)state;
    bool (*const rules[])(sf_network *, uint32_t) = {sf_rule_forbidden,  sf_rule_separable,
                                                     sf_rule_determined, sf_rule_eliminate,
                                                     sf_rule_dominated,  sf_rule_leaf};
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        int applied = 0;
        for (uint64_t seed = 0; seed < 150 * (uint64_t)sf_shape_count; seed++) {
            sf_arena arena = {0};
            sf_problem problem;
            sf_network net;
            sf_draw_problem(&sf_shapes[seed % (uint64_t)sf_shape_count], seed, &arena, &problem);
            sf_network_init(&net, &problem, &arena);
            for (uint32_t v = 0; v < problem.nnodes && !net.infeasible; v++)
                if (net.nodes[v].alive)
                    applied += rules[r](&net, v);
            int64_t least = net.infeasible ? SF_FORBIDDEN : lift_all(&problem, &net, &arena);
            if (least != sf_enumerate(&problem, &arena))
                fail_msg("rule %zu, seed %d", r, (int)seed);
            sf_arena_free(&arena);
        }
        assert_true(applied > 20);
    }
}

static void test_eliminate(void **state)
{
    (void)state;
    for (int s = 0; s < sf_shape_count; s++)
        for (uint64_t seed = 0; seed < 300; seed++) {
            sf_arena arena = {0};
            sf_problem problem;
            sf_elimination order;
            sf_draw_problem(&sf_shapes[s], seed, &arena, &problem);
            problem.ntimes = problem.nuses = 0; /* elimination does not look at them */
            uint32_t *choice = SF_ARRAY(&arena, problem.nnodes, uint32_t);
            assert_true(sf_order_find(&problem, 1 << 30, &arena, &order));
            int64_t least = sf_eliminate(&problem, &order, &arena, choice);
            assert_int_equal(least, sf_enumerate(&problem, &arena));
            if (least < SF_FORBIDDEN)
                assert_int_equal(sf_problem_judge(&problem, choice, &arena).cost, least);
            sf_arena_free(&arena);
        }
}

/* Tables that would not fit are seen before they are made. */
static void test_order_limit(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_problem problem;
    sf_elimination order;
    sf_shape shape = {"clique", 60, 9, 3000, 0, 10, 0, 1, false};
    sf_draw_problem(&shape, 3, &arena, &problem);
    assert_false(sf_order_find(&problem, 1 << 24, &arena, &order));
    sf_arena_free(&arena);
}

/* The parts together are the whole: nodes, edges and costs. */
static void test_parts(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        sf_arena arena = {0};
        sf_problem problem, piece;
        sf_shape shape = {"apart", 30, 4, 60, 10, 50, 50, 6, false};
        sf_draw_problem(&shape, seed, &arena, &problem);
        uint32_t *part = SF_ARRAY(&arena, problem.nnodes, uint32_t);
        uint32_t *nodes = SF_ARRAY(&arena, problem.nnodes, uint32_t), edges = 0, total = 0;
        uint32_t *choice = SF_ARRAY(&arena, problem.nnodes, uint32_t);
        uint32_t parts = sf_parts_find(&problem, &arena, part);
        sf_cutter cutter = sf_cutter_new(&problem, &arena);
        int64_t cost = problem.base;
        for (uint32_t p = 0; p < parts; p++) {
            uint32_t count = 0;
            for (uint32_t v = 0; v < problem.nnodes; v++)
                if (part[v] == p)
                    nodes[count++] = v;
            sf_cutter_cut(&cutter, nodes, count, &arena, &piece);
            assert_int_equal(piece.link_first[count], 2 * piece.nedges);
            cost = sf_cost_add(cost, sf_problem_judge(&piece, choice, &arena).cost);
            edges += piece.nedges;
            total += count;
        }
        assert_int_equal(edges, problem.nedges);
        assert_int_equal(total, problem.nnodes);
        assert_int_equal(cost, sf_problem_judge(&problem, choice, &arena).cost);
        sf_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce),    cmocka_unit_test(test_single_rules),
        cmocka_unit_test(test_eliminate), cmocka_unit_test(test_order_limit),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
