/* Which collectives go on at the same time: those on different links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/arena.h"
#include "sheaf/cluster.h"
#include "sim/links.h"

/* Axis 0 goes between hosts, axis 1 stays inside of them. */
enum { BETWEEN = 1, INSIDE = 2, BOTH = 3 };

static void test_links(void **state)
{
    (void)state;
    static const int sizes[] = {2, 4};
    sf_cluster *cluster;
    sf_costs *costs;
    sf_arena arena = {0};
    sf_links links = {0};
    assert_int_equal(sf_cluster_open("2x4xV100", NULL, &cluster), SF_OK);
    assert_int_equal(sf_costs_new(cluster, 2, sizes, 0, &arena, NULL, &costs), SF_OK);
    assert_int_equal(sf_costs_group_links(costs, BETWEEN), 2);
    assert_int_equal(sf_costs_group_links(costs, INSIDE), 1);
    assert_int_equal(sf_costs_group_links(costs, BOTH), 3);
    assert_int_equal(sf_costs_group_links(costs, 0), 0);

    assert_true(sf_links_take(&links, costs, INSIDE, 1, 5) == 1);
    assert_true(sf_links_take(&links, costs, BETWEEN, 2, 10) == 2);  /* beside it */
    assert_true(sf_links_take(&links, costs, INSIDE, 2, 1) == 6);    /* after the first */
    assert_true(sf_links_take(&links, costs, BOTH, 3, 1) == 12);     /* after all */
    assert_true(sf_links_take(&links, costs, INSIDE, 3, 1) == 13);   /* after that */
    assert_true(sf_links_take(&links, costs, BETWEEN, 20, 1) == 20); /* nobody is left */
    assert_true(sf_links_take(&links, costs, 0, 4, 100) == 4);       /* needs none, */
    assert_true(sf_links_take(&links, costs, INSIDE, 15, 1) == 15);  /* and takes none */
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* All waits are exposed, once: of the awaited one, and of the one that it queued after. */
static void test_exposed(void **state)
{
    (void)state;
    sf_timing all[] = {{.start = 0, .end = 4}, {.start = 2, .end = 9}, {.start = 4, .end = 6}};
    static const uint32_t sent[] = {0, 1, 2};
    assert_true(sf_wait_exposed(all, sent, 3, 2, 7) == 7); /* it has ended */
    assert_true(sf_wait_exposed(all, sent, 3, 2, 1) == 6);
    assert_true(all[2].exposed == 2 && all[0].exposed == 3 && all[1].exposed == 0);
    assert_true(sf_wait_exposed(all, NULL, 3, 1, 6) == 9);
    assert_true(all[2].exposed == 2 && all[0].exposed == 3 && all[1].exposed == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_links),
                                       cmocka_unit_test(test_exposed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
