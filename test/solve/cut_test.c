/* Cuts into stages, judged by all assignments that there are. */
#include "solve/cut/cut.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "solve/cut/cut_search.h"
#include "support/indexing.h"

enum { MOST_UNITS = 400, MOST_VALUES = 800, MOST_READS = 4000, MOST_STAGES = 8, MOST_GROUPS = 4 };

/* A problem with arrays of its own. */
typedef struct drawn {
    sf_cut_problem p;
    double time[MOST_UNITS], fixed[MOST_UNITS], kept[MOST_UNITS], bytes[MOST_VALUES];
    uint32_t maker[MOST_VALUES], first[MOST_VALUES + 1], reader[MOST_READS];
    uint32_t group_first[MOST_GROUPS + 1], grouped[3 * MOST_GROUPS];
    double speed[MOST_STAGES], room[MOST_STAGES], in_flight[MOST_STAGES];
} drawn;

static void close_value(drawn *d, uint32_t nreads)
{
    d->first[++d->p.nvalues] = nreads;
}

static void link_arrays(drawn *d)
{
    d->p.time = d->time;
    d->p.bytes = d->bytes;
    d->p.maker = d->maker;
    d->p.first = d->first;
    d->p.reader = d->reader;
}

/* Each unit makes a value that some later ones read, preferably near ones; a few values have no
 * maker. */
static void draw_problem(drawn *d, test_random *random, uint32_t nunits, uint32_t count)
{
    uint32_t nreads = 0, reach = (uint32_t)test_draw(random, 2, 6);
    memset(d, 0, sizeof *d);
    link_arrays(d);
    d->p.nunits = nunits;
    d->p.count = count;
    d->p.tolerance = (double)test_draw(random, 0, 4) / 10;
    for (uint32_t u = 0; u < nunits; u++) {
        d->time[u] = (double)test_draw(random, 0, 9);
        d->maker[d->p.nvalues] = u;
        d->bytes[d->p.nvalues] = (double)test_draw(random, 0, 20);
        for (uint32_t r = u + 1; r < nunits; r++)
            if (test_draw(random, 0, r - u < reach ? 2 : 40) == 0)
                d->reader[nreads++] = r;
        close_value(d, nreads);
    }
    for (int w = 0; w < 2; w++) {
        d->maker[d->p.nvalues] = SF_NO_MAKER;
        d->bytes[d->p.nvalues] = (double)test_draw(random, 0, 20);
        for (uint32_t r = 0; r < nunits; r++)
            if (test_draw(random, 0, nunits / 2) == 0)
                d->reader[nreads++] = r;
        close_value(d, nreads);
    }
}

/* Units that are near each other, now and then. */
static void draw_groups(drawn *d, test_random *random)
{
    d->p.group_first = d->group_first;
    d->p.grouped = d->grouped;
    for (int g = 0; g < MOST_GROUPS && d->p.nunits > 2; g++) {
        uint32_t at = (uint32_t)test_draw(random, 0, d->p.nunits - 1),
                 end = d->group_first[d->p.ngroups];
        if (test_draw(random, 0, 3))
            continue;
        for (uint32_t k = 0; k < 3 && at < d->p.nunits;
             k++, at += (uint32_t)test_draw(random, 1, 2))
            d->grouped[end++] = at;
        d->group_first[++d->p.ngroups] = end;
    }
}

static void draw_stages(drawn *d, test_random *random)
{
    for (uint32_t s = 0; s < d->p.count; s++) {
        d->speed[s] = (double)test_draw(random, 1, 4);
        d->room[s] = (double)test_draw(random, 6, 40);
        d->in_flight[s] = d->p.count - s;
    }
    for (uint32_t u = 0; u < d->p.nunits; u++) {
        d->fixed[u] = (double)test_draw(random, 0, 3);
        d->kept[u] = (double)test_draw(random, 0, 3);
    }
    if (test_draw(random, 0, 1))
        d->p.speed = d->speed;
    if (test_draw(random, 0, 1)) {
        d->p.room = d->room;
        d->p.fixed = d->fixed;
        d->p.kept = d->kept;
        d->p.in_flight = test_draw(random, 0, 1) ? d->in_flight : NULL;
    }
}

/* The rules, written down plainly. */
static bool is_allowed(const sf_cut_problem *p, const uint32_t *stage)
{
    double held[MOST_STAGES] = {0};
    uint32_t units[MOST_STAGES] = {0};
    for (uint32_t v = 0; v < p->nvalues; v++)
        for (uint32_t k = p->first[v]; k < p->first[v + 1]; k++)
            if (p->maker[v] != SF_NO_MAKER && stage[p->maker[v]] > stage[p->reader[k]])
                return false;
    for (uint32_t g = 0; g < p->ngroups; g++)
        for (uint32_t k = p->group_first[g]; k < p->group_first[g + 1]; k++)
            if (stage[p->grouped[k]] != stage[p->grouped[p->group_first[g]]])
                return false;
    for (uint32_t u = 0; u < p->nunits; u++) {
        units[stage[u]]++;
        if (p->room)
            held[stage[u]] +=
                p->fixed[u] + p->kept[u] * (p->in_flight ? p->in_flight[stage[u]] : 1);
    }
    for (uint32_t s = 0; s < p->count; s++)
        if ((p->room && held[s] > p->room[s] + 1e-6) || (units[s] == 0 && p->nunits >= p->count))
            return false;
    return true;
}

static double count_bytes(const sf_cut_problem *p, const uint32_t *stage)
{
    double bytes = 0;
    for (uint32_t v = 0; v < p->nvalues; v++) {
        bool reads[MOST_STAGES] = {false};
        uint32_t owner = p->count;
        for (uint32_t k = p->first[v]; k < p->first[v + 1]; k++) {
            reads[stage[p->reader[k]]] = true;
            owner = stage[p->reader[k]] < owner ? stage[p->reader[k]] : owner;
        }
        owner = p->maker[v] == SF_NO_MAKER ? owner : stage[p->maker[v]];
        for (uint32_t s = 0; s < p->count; s++)
            bytes += reads[s] && s != owner ? p->bytes[v] : 0;
    }
    return bytes;
}

static bool next_assignment(const sf_cut_problem *p, uint32_t *stage)
{
    for (uint32_t u = 0; u < p->nunits; u++) {
        if (++stage[u] < p->count)
            return true;
        stage[u] = 0;
    }
    return false;
}

/* The least slowest stage of all assignments; then the best of those within the limit. False where none is allowed. */
static bool try_all(const sf_cut_problem *p, sf_arena *arena, double *slowest, sf_cut_score *best)
{
    uint32_t stage[MOST_UNITS] = {0};
    *slowest = HUGE_VAL;
    do {
        if (is_allowed(p, stage))
            *slowest = fmin(*slowest, sf_cut_slowest(p, stage, arena));
    } while (next_assignment(p, stage));
    *best = (sf_cut_score){HUGE_VAL, HUGE_VAL};
    memset(stage, 0, sizeof stage);
    do {
        double time = sf_cut_slowest(p, stage, arena);
        if (!is_allowed(p, stage) || time > *slowest * (1 + p->tolerance) + 1e-9)
            continue;
        double bytes = count_bytes(p, stage);
        if (bytes < best->bytes - 1e-9 ||
            (bytes < best->bytes + 1e-9 && time < best->slowest - 1e-9))
            *best = (sf_cut_score){bytes, time};
    } while (next_assignment(p, stage));
    return isfinite(*slowest);
}

static void check_cut(const sf_cut_problem *p, const sf_cut *cut, sf_arena *arena)
{
    assert_true(is_allowed(p, cut->stage));
    assert_true(fabs(cut->bytes - count_bytes(p, cut->stage)) < 1e-6);
    assert_true(fabs(cut->slowest - sf_cut_slowest(p, cut->stage, arena)) < 1e-6);
    assert_true(cut->slowest <= cut->limit + 1e-6);
    assert_true(cut->slowest >= cut->least_slowest - 1e-6);
}

static void test_small_graphs_are_cut_exactly(void **state)
{
    (void)state;
    test_random random = {.key = 3};
    int impossible = 0, lines_best = 0, total = 0;
    static drawn d;
    for (int turn = 0; turn < 300; turn++) {
        sf_arena arena = {0};
        uint32_t count = (uint32_t)test_draw(&random, 1, 4);
        draw_problem(&d, &random, (uint32_t)test_draw(&random, 1, count < 4 ? 8 : 6), count);
        draw_stages(&d, &random);
        draw_groups(&d, &random);
        double slowest;
        sf_cut_score best;
        sf_cut cut, along;
        bool possible = try_all(&d.p, &arena, &slowest, &best);
        assert_int_equal(sf_cut_solve(&d.p, &arena, &cut), possible);
        impossible += !possible;
        if (possible) {
            assert_true(cut.is_exact);
            check_cut(&d.p, &cut, &arena);
            assert_true(fabs(cut.least_slowest - slowest) < 1e-9);
            assert_true(fabs(cut.bytes - best.bytes) < 1e-6);
            assert_true(fabs(cut.slowest - best.slowest) < 1e-6);
        }
        if (possible && sf_cut_lines(&d.p, &arena, &along)) {
            check_cut(&d.p, &along, &arena);
            assert_true(along.least_slowest <= slowest + 1e-6);
            total++;
            lines_best += along.limit < cut.limit + 1e-6 && along.bytes < cut.bytes + 1e-6;
        }
        sf_arena_free(&arena);
    }
    print_message("%d of %d along lines are as good; %d had no room\n", lines_best, total,
                  impossible);
    assert_true(impossible > 5 && impossible < 200);
    assert_true(lines_best * 10 > total * 7);
}

/* Graphs that are too large to try all. */
static void test_large_graphs_keep_the_rules(void **state)
{
    (void)state;
    test_random random = {.key = 5};
    static drawn d;
    for (int turn = 0; turn < 60; turn++) {
        sf_arena arena = {0};
        sf_cut cut;
        draw_problem(&d, &random, (uint32_t)test_draw(&random, 70, MOST_UNITS),
                     (uint32_t)test_draw(&random, 2, MOST_STAGES));
        if (turn % 2)
            draw_groups(&d, &random);
        if (turn % 3 == 0) {
            for (uint32_t s = 0; s < d.p.count; s++)
                d.speed[s] = 1 + s % 3;
            d.p.speed = d.speed;
        }
        assert_true(sf_cut_solve(&d.p, &arena, &cut));
        check_cut(&d.p, &cut, &arena);
        assert_true(d.p.ngroups > 0 || cut.slowest <= (1 + d.p.tolerance) * cut.least_slowest + 20);
        sf_arena_free(&arena);
    }
}

/* A chain of equal units with one narrow place for each border: it is found, and pays for less evenness. */
static void test_narrow_places_are_found(void **state)
{
    (void)state;
    static drawn d;
    enum { LAYERS = 12, DEPTH = 8 };
    for (uint32_t count = 2; count <= 4; count++) {
        sf_arena arena = {0};
        sf_cut cut;
        memset(&d, 0, sizeof d);
        link_arrays(&d);
        d.p.nunits = LAYERS * DEPTH;
        d.p.count = count;
        d.p.tolerance = 0.05;
        for (uint32_t u = 0; u < d.p.nunits; u++) {
            d.time[u] = 1;
            d.maker[u] = u;
            d.bytes[u] = u % DEPTH == DEPTH - 1 ? 1 : 5;
            d.reader[u] = u + 1;
            close_value(&d, u + 1 < d.p.nunits ? u + 1 : u);
        }
        assert_true(sf_cut_solve(&d.p, &arena, &cut));
        check_cut(&d.p, &cut, &arena);
        assert_true(fabs(cut.bytes - (count - 1)) < 1e-9);
        assert_true(fabs(cut.slowest - (double)d.p.nunits / count) < 1e-9);
        sf_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_graphs_are_cut_exactly),
        cmocka_unit_test(test_large_graphs_keep_the_rules),
        cmocka_unit_test(test_narrow_places_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
