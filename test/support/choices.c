#include "support/choices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

const sf_shape sf_shapes[] = {
    {"free", 7, 4, 150, 0, 50, 0, 1, false},
    {"dense", 6, 4, 400, 0, 1000, 0, 1, false},
    {"trees", 9, 3, 120, 0, 20, 0, 1, true},
    {"forbidden", 7, 4, 150, 40, 50, 0, 1, false},
    {"mostly forbidden", 8, 4, 130, 70, 9, 0, 1, true},
    {"limited", 7, 4, 150, 0, 50, 60, 6, false},
    {"tight", 7, 4, 200, 0, 1000, 35, 4, false},
    {"tight trees", 8, 3, 110, 10, 100, 45, 10, true},
    {"tight and forbidden", 7, 4, 150, 35, 50, 50, 6, false},
    {"all ties", 7, 4, 150, 20, 2, 50, 3, false},
    {"dense and limited", 6, 4, 500, 0, 1000, 55, 12, false},
};
const int sf_shape_count = sizeof sf_shapes / sizeof *sf_shapes;

typedef struct dice {
    uint64_t state;
} dice;

static uint32_t below(dice *d, uint32_t count)
{
    d->state ^= d->state << 13;
    d->state ^= d->state >> 7;
    d->state ^= d->state << 17;
    return (uint32_t)((d->state >> 20) % count);
}

enum { MOST_CELLS = 256 };

static int64_t draw_cost(dice *d, const sf_shape *shape)
{
    if (below(d, 100) < shape->forbidden)
        return SF_FORBIDDEN + below(d, 2);
    return (int64_t)below(d, shape->range) - (below(d, 8) == 0 ? 2 : 0);
}

static void draw_edges(dice *d, const sf_shape *shape, uint32_t nodes, sf_problem_builder *builder)
{
    int64_t values[MOST_CELLS];
    uint32_t count = nodes * shape->density / 100;
    for (uint32_t e = 0; e < count; e++) {
        uint32_t a = below(d, nodes), b = below(d, nodes);
        if (shape->tree && e + 1 < nodes) {
            a = below(d, 2) ? e : below(d, e + 1);
            b = e + 1;
        }
        uint32_t cells =
            sf_problem_builder_count(builder, a) * sf_problem_builder_count(builder, b);
        for (uint32_t i = 0; i < cells; i++)
            values[i] = draw_cost(d, shape);
        assert_int_equal(sf_problem_add_edge(builder, a, b, values, NULL), SF_OK);
    }
}

static void draw_nodes(dice *d, const sf_shape *shape, uint32_t nodes, sf_problem_builder *builder)
{
    int64_t values[MOST_CELLS];
    for (uint32_t v = 0; v < nodes; v++) {
        uint32_t count = 1 + below(d, shape->strategies);
        for (uint32_t i = 0; i < count; i++)
            values[i] = below(d, 30) == 0 && shape->forbidden ? SF_FORBIDDEN
                                                              : (int64_t)below(d, shape->range) - 1;
        assert_int_equal(sf_problem_add_node(builder, count, values, NULL), SF_OK);
        for (uint32_t terms = 1 + (below(d, 4) == 0); terms > 0; terms--) {
            int64_t begin = below(d, shape->times), end = begin + below(d, shape->times + 1);
            for (uint32_t i = 0; i < count; i++)
                values[i] = below(d, 4) == 0 ? 0 : below(d, 20);
            assert_int_equal(sf_problem_add_use(builder, v, begin, end, values, NULL), SF_OK);
        }
    }
}

void sf_draw_problem(const sf_shape *shape, uint64_t seed, sf_arena *arena, sf_problem *out)
{
    dice d = {seed * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x2545f4914f6cdd1d)};
    for (int i = 0; i < 8; i++)
        below(&d, 2);
    sf_problem_builder builder = {.arena = arena};
    uint32_t nodes = 1 + below(&d, shape->nodes);
    draw_nodes(&d, shape, nodes, &builder);
    draw_edges(&d, shape, nodes, &builder);
    if (shape->limit)
        sf_problem_set_limit(&builder,
                             nodes * 15 * shape->limit / 100 * (50 + below(&d, 50)) / 100);
    assert_int_equal(sf_problem_finish(&builder, out, NULL), SF_OK);
}

int64_t sf_enumerate(const sf_problem *problem, sf_arena *scratch)
{
    sf_mark mark = sf_arena_mark(scratch);
    uint32_t *choice = SF_ARRAY(scratch, problem->nnodes, uint32_t), v = 0;
    int64_t best = SF_FORBIDDEN;
    while (v < problem->nnodes || problem->nnodes == 0) {
        sf_verdict verdict = sf_problem_judge(problem, choice, scratch);
        if (verdict.feasible && verdict.cost < best)
            best = verdict.cost;
        for (v = 0; v < problem->nnodes && ++choice[v] == sf_problem_count(problem, v); v++)
            choice[v] = 0;
        if (problem->nnodes == 0)
            break;
    }
    sf_arena_reset(scratch, mark);
    return best;
}
