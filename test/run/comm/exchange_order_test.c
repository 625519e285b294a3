/* Orders of exchanges against a machine that does one thing after the other: with them every rank comes to its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/hash.h"
#include "run/comm/exchange_order.h"

enum { RANKS = 5, MOST = 40, LONGEST = 400 };

/* The event of a rank at an instruction: begins an exchange, waits for one, or neither. */
typedef struct program {
    uint32_t length;
    int begins[LONGEST], waits[LONGEST]; /* or -1 */
} program;

typedef struct exchange {
    uint32_t members; /* as bits */
} exchange;

typedef struct drawn {
    int nranks, count;
    exchange exchanges[MOST];
    program programs[RANKS];
} drawn;

static uint32_t below(uint64_t *seed, uint32_t end)
{
    *seed = sf_hash_mix(*seed, 1);
    return (uint32_t)(*seed % end);
}

/* All exchanges happen one after the other; each rank begins one some instructions before, and
 * waits for it some after. Those of one group are begun in order. */
static void draw_programs(uint64_t *seed, drawn *d)
{
    d->nranks = 2 + (int)below(seed, RANKS - 1);
    d->count = 1 + (int)below(seed, MOST - 1);
    for (int r = 0; r < d->nranks; r++) {
        program *p = &d->programs[r];
        p->length = LONGEST;
        memset(p->begins, -1, sizeof p->begins);
        memset(p->waits, -1, sizeof p->waits);
    }
    for (int e = 0; e < d->count; e++) {
        uint32_t a = below(seed, (uint32_t)d->nranks), b = below(seed, (uint32_t)d->nranks - 1);
        uint32_t now = (uint32_t)(e + 1) * (LONGEST / (MOST + 2));
        d->exchanges[e].members = 1u << a | 1u << (b + (b >= a));
        if (below(seed, 4) == 0)
            d->exchanges[e].members = (1u << d->nranks) - 1;
        for (int r = 0; r < d->nranks; r++) {
            program *p = &d->programs[r];
            if (!(d->exchanges[e].members >> r & 1))
                continue;
            uint32_t begin = now - below(seed, now),
                     wait = now + 1 + below(seed, LONGEST - now - 1);
            while (p->begins[begin] >= 0 || p->waits[begin] >= 0)
                begin++;
            while (wait <= begin ||
                   (wait < LONGEST && (p->waits[wait] >= 0 || p->begins[wait] >= 0)))
                wait++;
            p->begins[begin] = e;
            if (wait < LONGEST)
                p->waits[wait] = e;
        }
    }
}

static void list_comings(const drawn *d, int rank, sf_comings *out, sf_arena *arena)
{
    const program *p = &d->programs[rank];
    *out = (sf_comings){0};
    for (uint32_t i = 0; i < p->length; i++) {
        sf_coming wait = {.key = (uint64_t)p->waits[i] * 77, .at = i};
        if (p->waits[i] >= 0)
            SF_PUSH(arena, out->at, out->count, out->capacity, wait);
        if (p->begins[i] < 0)
            continue;
        uint32_t members = (uint32_t)__builtin_popcount(d->exchanges[p->begins[i]].members);
        sf_coming begin = {.key = (uint64_t)p->begins[i] * 77, .members = members, .at = i};
        SF_PUSH(arena, out->at, out->count, out->capacity, begin);
    }
}

/* A rank that does its work in order: exchanges put before an instruction, then that. */
typedef struct device {
    const sf_put *puts;
    size_t count, next;
    const sf_comings *comings;
} device;

static int exchange_of(const device *v)
{
    return (int)(v->comings->at[v->puts[v->next].begun].key / 77);
}

/* An exchange is over when it is the next of all members. */
static bool run_one(device *devices, const drawn *d)
{
    for (int r = 0; r < d->nranks; r++) {
        if (devices[r].next == devices[r].count)
            continue;
        int e = exchange_of(&devices[r]);
        bool is_next = true;
        for (int o = 0; o < d->nranks; o++)
            if (d->exchanges[e].members >> o & 1)
                is_next =
                    is_next && devices[o].next < devices[o].count && exchange_of(&devices[o]) == e;
        for (int o = 0; o < d->nranks && is_next; o++)
            devices[o].next += d->exchanges[e].members >> o & 1;
        if (is_next)
            return true;
    }
    return false;
}

/* Put after where it begins, and not after its wait. */
static void check_places(const drawn *d, int rank, const device *v)
{
    const program *p = &d->programs[rank];
    for (size_t i = 0; i < v->count; i++) {
        const sf_coming *c = &v->comings->at[v->puts[i].begun];
        assert_true(v->puts[i].before > c->at);
        assert_true(i == 0 || v->puts[i].before >= v->puts[i - 1].before);
        for (uint32_t k = 0; k < p->length; k++)
            if (p->waits[k] >= 0 && (uint64_t)p->waits[k] * 77 == c->key)
                assert_true(v->puts[i].before <= k);
    }
}

static void test_orders(void **state)
{
    (void)state;
    uint64_t seed = 20;
    int refused = 0;
    for (int round = 0; round < 300; round++) {
        sf_arena arena = {0};
        drawn *d = SF_NEW(&arena, drawn);
        sf_comings comings[RANKS];
        device devices[RANKS] = {0};
        bool found[RANKS] = {0};
        draw_programs(&seed, d);
        for (int r = 0; r < d->nranks; r++)
            list_comings(d, r, &comings[r], &arena);
        for (int r = 0; r < d->nranks; r++) {
            sf_put *puts = NULL;
            found[r] = sf_order_meetings(d->nranks, comings, r, &arena, &puts, &devices[r].count);
            devices[r].puts = puts;
            devices[r].comings = &comings[r];
            assert_int_equal(found[r], found[0]);
            if (found[r])
                check_places(d, r, &devices[r]);
        }
        refused += !found[0];
        while (found[0] && run_one(devices, d)) {
        }
        for (int r = 0; r < d->nranks && found[0]; r++)
            assert_int_equal(devices[r].next, devices[r].count);
        sf_arena_free(&arena);
    }
    assert_int_equal(refused, 0);
}

/* Two stages, which both begin to receive before they send: the first message sent is put first. */
static void test_two_stages(void **state)
{
    (void)state;
    enum { THERE = 1, BACK = 2 };
    sf_coming first[] = {{BACK, 2, 0}, {THERE, 2, 3}, {BACK, 0, 4}, {THERE, 0, 9}};
    sf_coming second[] = {{THERE, 2, 0}, {THERE, 0, 1}, {BACK, 2, 4}, {BACK, 0, 7}};
    sf_comings ranks[] = {{first, 4, 4}, {second, 4, 4}};
    sf_arena arena = {0};
    sf_put *puts;
    size_t count;
    assert_true(sf_order_meetings(2, ranks, 0, &arena, &puts, &count));
    assert_int_equal(count, 2);
    assert_int_equal(first[puts[0].begun].key, THERE);
    assert_int_equal(puts[0].before, 4);
    assert_int_equal(first[puts[1].begun].key, BACK);
    assert_int_equal(puts[1].before, 4);
    assert_true(sf_order_meetings(2, ranks, 1, &arena, &puts, &count));
    assert_int_equal(second[puts[0].begun].key, THERE);
    assert_int_equal(puts[0].before, 1);
    assert_int_equal(puts[1].before, 5);
    sf_arena_free(&arena);
}

/* Programs without an order are refused: cycles, exchanges that a member never begins, and
 * mismatches between members. */
static void test_refused(void **state)
{
    (void)state;
    sf_coming circle[2][4] = {{{1, 2, 0}, {1, 0, 1}, {2, 2, 2}}, {{2, 2, 0}, {2, 0, 1}, {1, 2, 2}}};
    sf_coming lonely[2][4] = {{{1, 2, 0}}, {{2, 1, 0}}};
    sf_coming odd[2][4] = {{{1, 2, 0}}, {{1, 3, 0}}};
    sf_coming twice[2][4] = {{{1, 2, 0}, {1, 2, 1}}, {{1, 2, 0}}};
    sf_coming unknown[2][4] = {{{1, 2, 0}, {3, 0, 1}}, {{1, 2, 0}}};
    sf_coming back[2][4] = {{{1, 2, 5}, {1, 0, 3}}, {{1, 2, 0}}};
    struct {
        sf_coming (*ranks)[4];
        size_t counts[2];
    } cases[] = {{circle, {3, 3}}, {lonely, {1, 1}},  {odd, {1, 1}},
                 {twice, {2, 1}},  {unknown, {2, 1}}, {back, {2, 1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_comings ranks[2];
        sf_arena arena = {0};
        sf_put *puts;
        size_t count;
        for (int r = 0; r < 2; r++)
            ranks[r] = (sf_comings){cases[i].ranks[r], cases[i].counts[r], 4};
        for (int r = 0; r < 2; r++)
            assert_false(sf_order_meetings(2, ranks, r, &arena, &puts, &count));
        sf_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_two_stages),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
