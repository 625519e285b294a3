/* Costs: known answers, and invariants on every cluster of the library for groups of every
 * shape. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cluster/cost_model.h"
#include "cluster/device_library.h"

static const double MiB = 1048576;

static sf_cluster *make(const char *text)
{
    sf_cluster *cluster = NULL;
    assert_int_equal(sf_cluster_make(sf_str_of(text), NULL, &cluster), SF_OK);
    return cluster;
}

static sf_costs *lay(const sf_cluster *cluster, sf_arena *arena, int naxes, const int *sizes)
{
    sf_costs *costs = NULL;
    assert_int_equal(sf_costs_new(cluster, naxes, sizes, 0, arena, NULL, &costs), SF_OK);
    return costs;
}

#define LAY(cluster, arena, ...)                                                                   \
    lay(cluster, arena, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})

static void assert_close(double found, double expected)
{
    if (fabs(found - expected) > 1e-12 * fabs(expected))
        fail_msg("%.17g instead of %.17g", found, expected);
}

/* Round numbers: 2 racks of 2 nodes of 4 devices; inside 1 us and 100 GB/s, network 10 us, 10 GB/s on 2
 * lanes, uplink 20 us and 4 GB/s on 1 lane. */
static sf_cluster *round_cluster(void)
{
    sf_cluster *cluster = make("4x4xV100");
    cluster->nodes[0].inside = (sf_link){1e-6, 100e9, 0, 0};
    cluster->nodes[0].network = (sf_link){10e-6, 10e9, 2, 0};
    cluster->rack_nodes = 2;
    cluster->uplink = (sf_link){20e-6, 4e9, 1, 0};
    return cluster;
}

static void test_one_level(void **state)
{
    (void)state;
    sf_cluster *cluster = round_cluster();
    sf_arena arena = {0};
    sf_costs *costs = LAY(cluster, &arena, 4, 4);
    const double S = 64 * MiB, a = 1e-6, c = 100e9, small = 64;
    const struct {
        sf_collective kind;
        double ring, tree; /* large and small */
    } known[] = {
        {SF_ALL_REDUCE, 6 * a + 2 * 0.75 * S / c, 4 * a + 2 * small / c},
        {SF_ALL_GATHER, 3 * a + 0.75 * S / c, 2 * a + small / c},
        {SF_REDUCE_SCATTER, 3 * a + 0.75 * S / c, 2 * a + small / c},
        {SF_BROADCAST, 3 * a + S / c, 2 * (a + small / c)},
        {SF_ALL_TO_ALL, 3 * a + 0.75 * S / c, 3 * a + 0.75 * small / c},
        {SF_PERMUTE, a + S / c, a + small / c},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_close(sf_costs_collective(costs, known[i].kind, 2, S), known[i].ring);
        assert_close(sf_costs_collective(costs, known[i].kind, 2, small), known[i].tree);
        assert_close(sf_costs_collective(costs, known[i].kind, 0, S), 0);
    }
    sf_algorithm how;
    sf_costs_collective_how(costs, SF_ALL_REDUCE, 2, S, &how);
    assert_string_equal(sf_algorithm_name(how), "ring");
    sf_costs_collective_how(costs, SF_ALL_REDUCE, 2, small, &how);
    assert_string_equal(sf_algorithm_name(how), "tree");
    sf_costs_collective_how(costs, SF_ALL_REDUCE, 0, S, &how);
    assert_string_equal(sf_algorithm_name(how), "none");
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* Without a switch a group has the links between its members. */
static void test_direct_links(void **state)
{
    (void)state;
    sf_cluster *cluster = make("1x8xV100");
    sf_arena arena = {0};
    cluster->nodes[0].inside = (sf_link){1e-6, 150e9, 0, 40e9};
    static const struct {
        int members;
        double bandwidth;
    } known[] = {{2, 40e9}, {3, 80e9}, {4, 120e9}, {8, 150e9}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int n = known[i].members;
        sf_costs *costs = LAY(cluster, &arena, n);
        assert_close(sf_costs_collective(costs, SF_ALL_GATHER, 1, 64 * MiB),
                     (n - 1) * (1e-6 + 64 * MiB / n / known[i].bandwidth));
    }
    sf_cluster_free(cluster);
    /* A DGX-2 has one. */
    cluster = make("nnscaler");
    assert_true(cluster->nodes[0].inside.peer == 0);
    sf_cluster_free(cluster);
    sf_arena_free(&arena);
}

/* Four groups of a device in each node of a rack share two lanes: 5 GB/s each. Between racks 8 devices
 * share one lane: 0.5 GB/s each. */
static void test_shared_lanes(void **state)
{
    (void)state;
    sf_cluster *cluster = round_cluster();
    sf_arena arena = {0};
    sf_costs *costs = LAY(cluster, &arena, 2, 2, 4);
    const double S = 64 * MiB;
    assert_int_equal(sf_costs_group_size(costs, 2), 2);
    assert_int_equal(sf_costs_group_level(costs, 0), -1);
    assert_int_equal(sf_costs_group_level(costs, 1), 2);
    assert_int_equal(sf_costs_group_level(costs, 2), 1);
    assert_int_equal(sf_costs_group_level(costs, 4), 0);
    assert_int_equal(sf_costs_group_level(costs, 6), 1);
    assert_close(sf_costs_collective(costs, SF_ALL_REDUCE, 2, S), 2 * (10e-6 + S / 2 / 5e9));
    assert_close(sf_costs_collective(costs, SF_PERMUTE, 2, S), 10e-6 + S / 5e9);
    assert_close(sf_costs_collective(costs, SF_ALL_REDUCE, 1, S), 2 * (20e-6 + S / 2 / 0.5e9));

    /* Two devices a node have a lane each. */
    sf_cluster *pair = make("2x2xV100");
    pair->nodes[0].network = (sf_link){10e-6, 10e9, 2, 0};
    sf_costs *half = LAY(pair, &arena, 2, 2);
    assert_close(sf_costs_collective(half, SF_PERMUTE, 1, S), 10e-6 + S / 10e9);
    sf_arena_free(&arena);
    sf_cluster_free(pair);
    sf_cluster_free(cluster);
}

/* A group of all: channels of all devices of a node fill its lanes. */
static void test_two_levels(void **state)
{
    (void)state;
    sf_cluster *cluster = round_cluster();
    sf_arena arena = {0};
    sf_costs *costs = LAY(cluster, &arena, 2, 8);
    const double S = 64 * MiB, b0 = 100e9, b1 = 5e9;
    double flat = 7 * 10e-6 + 7.0 / 8 * S / (4 * b1);
    double inside = 3 * (1e-6 + S / 4 / b0), across = 10e-6 + S / 4 / 2 / b1;
    sf_algorithm how;
    assert_int_equal(sf_costs_group_level(costs, 2), 1);
    assert_close(sf_costs_collective_how(costs, SF_ALL_GATHER, 2, S, &how),
                 fmin(flat, inside + across));
    assert_close(sf_costs_collective(costs, SF_ALL_REDUCE, 2, S), 2 * fmin(flat, inside + across));
    const double medium = 100e3;
    double levels = 2 * (2 * 1e-6 + medium / b0) + 2 * (10e-6 + medium / 4 / 2 / b1);
    assert_close(sf_costs_collective_how(costs, SF_ALL_REDUCE, 2, medium, &how), levels);
    assert_string_equal(sf_algorithm_name(how), "hierarchical");
    /* Of 8 parts 3 stay inside and 4 leave. */
    assert_close(sf_costs_collective_how(costs, SF_ALL_TO_ALL, 2, S, &how),
                 3 * (1e-6 + S / 8 / b0) + 4 * (10e-6 + S / 8 / b1));
    assert_string_equal(sf_algorithm_name(how), "ring");
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* Two racks of two nodes of four. Traffic that leaves a rack has a lane of 4 GB/s for eight. */
static void test_three_levels(void **state)
{
    (void)state;
    sf_cluster *cluster = round_cluster();
    sf_arena arena = {0};
    sf_costs *costs = LAY(cluster, &arena, 16);
    const double S = 64 * MiB;
    double flat = 15 * 20e-6 + 15.0 / 16 * S / 4e9, tree = 4 * 20e-6 + S / 4e9;
    double levels = 3 * (1e-6 + S / 4 / 100e9) + 10e-6 + S / 2 / 20e9 + 20e-6 + S / 2 / 4e9;
    sf_algorithm how;
    assert_int_equal(sf_costs_group_level(costs, 1), 2);
    assert_true(levels < flat && levels < tree);
    assert_close(sf_costs_collective_how(costs, SF_ALL_GATHER, 1, S, &how), levels);
    assert_int_equal(how, SF_ALGORITHM_HIERARCHICAL);
    assert_close(
        sf_costs_collective(costs, SF_BROADCAST, 1, S),
        fmin(15 * 20e-6 + S / 4e9, (3e-6 + S / 100e9) + (10e-6 + S / 20e9) + (20e-6 + S / 4e9)));
    assert_close(sf_costs_collective(costs, SF_PERMUTE, 1, S), 20e-6 + S / 0.5e9);
    double pairs =
        3 * (1e-6 + S / 16 / 100e9) + 4 * (10e-6 + S / 16 / 5e9) + 8 * (20e-6 + S / 16 / 0.5e9);
    assert_close(sf_costs_collective(costs, SF_ALL_TO_ALL, 1, S), pairs);
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* Of nodes that differ the slowest link counts, the largest latency and the slowest device, in any
 * order. */
static void test_mixed(void **state)
{
    (void)state;
    sf_cluster *fast = make("2x4xH100"), *slow = make("2x4xV100");
    const sf_nodes both[2][2] = {
        {{.count = 1, .devices = 4, .inside = {1e-6, 100e9, 0, 0}, .network = {10e-6, 10e9, 0, 0}},
         {.count = 1,
          .devices = 4,
          .kind = 1,
          .inside = {3e-6, 50e9, 0, 0},
          .network = {5e-6, 2e9, 0, 0}}},
        {{.count = 1,
          .devices = 4,
          .kind = 1,
          .inside = {3e-6, 50e9, 0, 0},
          .network = {5e-6, 2e9, 0, 0}},
         {.count = 1, .devices = 4, .inside = {1e-6, 100e9, 0, 0}, .network = {10e-6, 10e9, 0, 0}}},
    };
    sf_device_kind kinds[] = {fast->kinds[0], slow->kinds[0]};
    sf_arena arena = {0};
    const double S = 64 * MiB;
    for (int order = 0; order < 2; order++) {
        sf_nodes nodes[2];
        memcpy(nodes, both[order], sizeof nodes);
        sf_cluster mixed = {.nkinds = 2, .kinds = kinds, .nruns = 2, .nodes = nodes};
        assert_int_equal(sf_cluster_finish(&mixed, SF_NOWHERE, NULL), SF_OK);
        assert_int_equal(mixed.ndevices, 8);
        sf_costs *costs = LAY(&mixed, &arena, 2, 4);
        assert_close(sf_costs_collective(costs, SF_ALL_GATHER, 2, S), 3 * 3e-6 + 0.75 * S / 50e9);
        assert_close(sf_costs_collective(costs, SF_ALL_GATHER, 1, S), 10e-6 + S / 2 / 2e9);
        assert_int_equal(sf_costs_memory(costs), slow->kinds[0].memory - slow->kinds[0].reserve);
        sf_effort work = {.product = true, .math = SF_MATH_F16, .flops = 1e12, .bytes = 1e6};
        sf_costs *only = LAY(slow, &arena, 2, 4);
        assert_close(sf_costs_op(costs, &work), sf_costs_op(only, &work));
    }
    sf_arena_free(&arena);
    sf_cluster_free(fast);
    sf_cluster_free(slow);
}

/* Groups that do not divide evenly over nodes: three devices a node, groups of two and of four. */
static void test_uneven(void **state)
{
    (void)state;
    sf_cluster *cluster = make("2x3xV100");
    cluster->nodes[0].inside = (sf_link){1e-6, 100e9, 0, 0};
    cluster->nodes[0].network = (sf_link){10e-6, 10e9, 0, 0};
    sf_arena arena = {0};
    const double S = 64 * MiB;
    sf_costs *pairs = LAY(cluster, &arena, 3, 2); /* 0 1, 2 3, 4 5: the second leaves its node */
    assert_close(sf_costs_collective(pairs, SF_PERMUTE, 2, S), 10e-6 + S / 10e9);
    sf_costs *four = LAY(cluster, &arena, 4); /* 0 1 2, 3 */
    assert_close(sf_costs_collective(four, SF_ALL_GATHER, 1, S), 3 * 10e-6 + 0.75 * S / 10e9);
    /* The one that is alone reaches three over the network. */
    assert_close(sf_costs_collective(four, SF_ALL_TO_ALL, 1, S),
                 2 * (1e-6 + S / 4 / 100e9) + 3 * (10e-6 + S / 4 / 10e9));
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

static void check_collectives(const sf_costs *costs, uint32_t axes)
{
    for (int k = 0; k < SF_COLLECTIVE_COUNT; k++) {
        double before = 0;
        for (double bytes = 0; bytes < 1e12; bytes = bytes * 1.7 + 1) {
            double seconds = sf_costs_collective(costs, (sf_collective)k, axes, bytes);
            assert_true(isfinite(seconds) && seconds >= before);
            assert_true((seconds > 0) == (sf_costs_group_size(costs, axes) > 1));
            before = seconds;
        }
    }
    for (double bytes = 1; bytes < 1e12; bytes *= 10) {
        double gather = sf_costs_collective(costs, SF_ALL_GATHER, axes, bytes);
        double scatter = sf_costs_collective(costs, SF_REDUCE_SCATTER, axes, bytes);
        double reduce = sf_costs_collective(costs, SF_ALL_REDUCE, axes, bytes);
        assert_true(gather == scatter && reduce == 2 * gather);
    }
}

static void check_work(const sf_costs *costs)
{
    for (int product = 0; product < 2; product++)
        for (int m = 0; m < SF_MATH_COUNT; m++) {
            double before = 0;
            for (double amount = 0; amount < 1e16; amount = 3 * amount + 1) {
                sf_effort work = {.product = product == 1,
                                  .math = (sf_math)m,
                                  .flops = amount,
                                  .bytes = amount / 100};
                double seconds = sf_costs_op(costs, &work);
                assert_true(isfinite(seconds) && seconds > 0 && seconds >= before);
                before = seconds;
            }
        }
}

static void check_cluster(const char *name)
{
    sf_cluster *cluster = make(name);
    sf_arena arena = {0};
    int n = cluster->ndevices;
    for (int a = 1; a <= n; a++)
        for (int b = 1; n % a == 0 && b <= n / a; b++) {
            if (n / a % b != 0)
                continue;
            sf_costs *costs = LAY(cluster, &arena, a, b, n / a / b);
            for (uint32_t axes = 0; axes < 8; axes++)
                check_collectives(costs, axes);
            check_work(costs);
            /* Axes of one device change nothing, wherever they are. */
            sf_costs *more = LAY(cluster, &arena, a, 1, b, n / a / b);
            for (int k = 0; k < SF_COLLECTIVE_COUNT; k++)
                assert_true(sf_costs_collective(costs, (sf_collective)k, 5, 1e6) ==
                            sf_costs_collective(more, (sf_collective)k, 9 | 2, 1e6));
        }
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

static void test_library(void **state)
{
    (void)state;
    char text[128];
    for (int i = 0; sf_library_bed_nth(i); i++)
        check_cluster(sf_library_bed_nth(i)->name);
    for (int i = 0; sf_library_kind_nth(i); i++) {
        snprintf(text, sizeof text, "3x4x%s", sf_library_kind_nth(i)->kind.name);
        check_cluster(text);
    }
}

/* A known order of costs: the expected one on one of the test beds. */
static void test_expected_order(void **state)
{
    (void)state;
    sf_cluster *cluster = make("rhino-m8");
    sf_arena arena = {0};
    sf_costs *costs = LAY(cluster, &arena, 2, 8);
    const double S = 256 * MiB;
    double inside = sf_costs_collective(costs, SF_ALL_REDUCE, 2, S);
    double across = sf_costs_collective(costs, SF_ALL_REDUCE, 1, S);
    double all = sf_costs_collective(costs, SF_ALL_REDUCE, 3, S);
    assert_true(inside < all && all < across);
    /* One NIC for eight groups at the same time. */
    assert_close(across, 2 * (14e-6 + S / 2 / (0.85 * 12.5e9 / 8)));
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

static void test_work(void **state)
{
    (void)state;
    sf_cluster *cluster = make("1x1xV100");
    sf_device_kind *kind = &cluster->kinds[0];
    sf_arena arena = {0};
    sf_costs *costs = lay(cluster, &arena, 0, NULL);
    sf_effort nothing = {0},
              product = {.product = true, .math = SF_MATH_F16, .flops = 1e12, .bytes = 1};
    assert_close(sf_costs_op(costs, &nothing), kind->launch);
    assert_close(sf_costs_op(costs, &product), kind->ramp + 1e12 / (0.8 * 125e12));
    sf_effort copy = {.product = false, .math = SF_MATH_F32, .flops = 1, .bytes = 9e9};
    assert_close(sf_costs_op(costs, &copy), 9e9 / (0.88 * 900e9));
    sf_effort loop = {.product = false, .math = SF_MATH_F32, .flops = 15.7e12, .bytes = 1};
    sf_effort both = {.product = true,
                      .math = SF_MATH_F16,
                      .flops = 1e12,
                      .bytes = 1,
                      .vector = 15.7e12}; /* the epilogue is added */
    assert_close(sf_costs_op(costs, &loop), 1);
    assert_close(sf_costs_op(costs, &both), 1 + sf_costs_op(costs, &product));
    /* Half of the share at f0. */
    sf_effort half = {
        .product = true, .math = SF_MATH_F32, .flops = kind->ramp * 0.8 * 15.7e12, .bytes = 1};
    assert_close(half.flops / sf_costs_op(costs, &half), 0.4 * 15.7e12);
    /* V100 has units for f16 only. */
    assert_int_equal(sf_math_done(kind, SF_MATH_F8), SF_MATH_F16);
    assert_int_equal(sf_math_done(kind, SF_MATH_BF16), SF_MATH_F32);
    assert_int_equal(sf_math_done(kind, SF_MATH_TF32), SF_MATH_F32);
    assert_int_equal(sf_math_done(kind, SF_MATH_F16), SF_MATH_F16);
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* Measured passes, batches and convolutions count if they exist, and only then. */
static void test_measured_work(void **state)
{
    (void)state;
    static const double flops[] = {1e3, 1e6}, seconds[] = {1e-6, 1e-3}, slower[] = {2e-6, 2e-3};
    sf_cluster *cluster = make("1x1xCPU-core");
    sf_device_kind *kind = &cluster->kinds[0];
    sf_arena arena = {0};
    sf_costs *costs = lay(cluster, &arena, 0, NULL);
    sf_effort loop = {.flops = 5e9, .counted = true};
    loop.passes = (sf_passes){1, 2, 3, 4, 5, 6, 7};
    sf_effort plain = loop;
    plain.counted = false;
    assert_close(sf_costs_op(costs, &loop), sf_costs_op(costs, &plain));
    kind->vector_flops = 1;
    kind->divide = 10;
    kind->function = 100;
    kind->fold = 1000;
    kind->strided = 1e4;
    kind->run = 1e5;
    assert_close(sf_costs_op(costs, &loop), (1 + 5) + 20 + 300 + 4e3 + 6e4 + 7e5);
    assert_close(sf_costs_op(costs, &plain), 5e9);
    sf_effort product = {.product = true, .math = SF_MATH_F32, .flops = 1e6, .batches = 1000};
    kind->launch = 0;
    kind->products[SF_MATH_F32] = (sf_curve){2, flops, seconds};
    assert_close(sf_costs_op(costs, &product), 1000 * 1e-6);
    product.batches = 1;
    assert_close(sf_costs_op(costs, &product), 1e-3);
    sf_effort with_loop = loop;
    with_loop.product = true;
    with_loop.math = SF_MATH_F32;
    with_loop.flops = 1e6;
    with_loop.vector = 5e9;
    assert_close(sf_costs_op(costs, &with_loop), 1e-3 + sf_costs_op(costs, &loop));
    product.packing = (sf_packing){.elements = 1, .across = 2, .runs = 3};
    assert_close(sf_costs_op(costs, &product), 1e-3);
    kind->convolutions = (sf_curve){2, flops, slower};
    kind->pack = 1;
    kind->pack_across = 10;
    kind->pack_run = 100;
    assert_close(sf_costs_op(costs, &product), 2e-3 + 1 + 20 + 300);
    product.packing = (sf_packing){
        .elements = 7, .kernel = 3, .runs = 2, .rows = 24, .features = 64, .steps = 4096};
    assert_close(sf_costs_op(costs, &product), 2e-3 + 7 + 200);
    kind->threads = 4; /* two halves of the rows, and of the features */
    assert_close(sf_costs_op(costs, &product), 2e-3 + 2 * (4 + 200) + 2 * 3);
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* An op on a GPU takes the maximum of compute and memory time; products by their depth, whatever
 * their batches, all other measured ops by their unit. */
static void test_gpu(void **state)
{
    (void)state;
    static const double flops[] = {1e3, 1e6}, shallow[] = {4e-6, 4e-3}, deep[] = {1e-6, 1e-3},
                        attended[] = {7e-6, 7e-3}, bytes[] = {1e3, 1e6}, taken[] = {1e-6, 1e-3},
                        distances[] = {1e5, 1e7}, paces[] = {0.2e-9, 1e-9}, depths[] = {16, 256};
    const sf_curve by_depth[] = {{2, flops, shallow}, {2, flops, deep}};
    sf_gpu gpu = {.products[SF_MATH_BF16] = {2, depths, by_depth},
                  .units[SF_UNIT_ATTENTION][SF_MATH_BF16] = {2, flops, attended}};
    sf_cluster *cluster = make("1x1xCPU-core");
    sf_device_kind *kind = &cluster->kinds[0];
    sf_arena arena = {0};
    sf_costs *costs = lay(cluster, &arena, 0, NULL);
    assert_false(sf_costs_on_gpu(costs));
    kind->gpu = &gpu;
    kind->flops[SF_MATH_BF16] = 1e9;
    kind->launch = 2e-6;
    kind->loops = (sf_curve){2, bytes, taken};
    kind->paces = (sf_curve){2, distances, paces};
    assert_true(sf_costs_on_gpu(costs));
    static const struct {
        double depth, seconds;
    } products[] = {{1, 4e-3}, {16, 4e-3}, {64, 2e-3}, {256, 1e-3}, {9999, 1e-3}};
    sf_effort e = {.product = true, .math = SF_MATH_BF16, .flops = 1e6, .batches = 50};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        e.depth = products[i].depth;
        assert_close(sf_costs_op(costs, &e), products[i].seconds);
    }
    e.bytes = 5e6; /* 5 ms, and no more than that */
    assert_close(sf_costs_op(costs, &e), 5e-3);
    /* near data takes a fifth of the time, but no product is faster for it */
    e.near[SF_NEAR_STEPS - 1] = 0;
    e.near[0] = 5e6;
    assert_close(sf_costs_op(costs, &e), 1e-3);
    e.unit = SF_UNIT_ATTENTION;
    assert_close(sf_costs_op(costs, &e), 7e-3);
    e.unit = SF_UNIT_ATTENTION_GRADIENT; /* was not measured: a product */
    assert_close(sf_costs_op(costs, &e), 1e-3);
    e.unit =
        SF_UNIT_OTHER; /* four calls of 250 each: the curve of the next depth, and launched as often */
    e.near[0] = e.bytes = 0;
    e.calls = 4;
    assert_close(sf_costs_op(costs, &e), 4 * 0.25e-3);
    e.padding = 2;
    assert_close(sf_costs_op(costs, &e), 4 * 0.5e-3);
    e = (sf_effort){.flops = 10};
    assert_close(sf_costs_op(costs, &e), 2e-6);
    gpu.memory[SF_TOUCH_MOVES] = (sf_curve){2, bytes, (const double[]){3e-6, 3e-3}};
    kind->window = 1e-6;
    e = (sf_effort){.flops = 10, .bytes = 1e6, .touch = SF_TOUCH_MOVES};
    assert_close(sf_costs_op(costs, &e), 3e-3);
    e.flops = 1e4;
    assert_close(sf_costs_op(costs, &e), 1e-2);
    kind->transposed = 1e-3;
    kind->transposed_run = 1e-2;
    e = (sf_effort){.counted = true, .passes = {.folds = 5, .strided = 5, .runs = 2}};
    assert_close(sf_costs_op(costs, &e), 5e-3 + 2e-2);
    e = (sf_effort){.product = true, .math = SF_MATH_F32, .flops = kind->flops[SF_MATH_F32]};
    assert_close(sf_costs_op(costs, &e), 1 / kind->product_share);
    kind->gpu = NULL;
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* Products of a batch that all threads share take as long as those of one thread each, where that is less. */
static void test_batched(void **state)
{
    (void)state;
    static const double flops[] = {1e3, 1e6}, alone[] = {1e-6, 1e-3}, among[] = {5e-7, 5e-4};
    static const struct {
        double batches, seconds;
    } cases[] = {{1, 1e-6}, {2, 2e-6}, {3, 2e-6}, {4, 2e-6}, {5, 4e-6}, {400, 2e-4}};
    sf_cluster *cluster = make("1x1xCPU-core");
    sf_device_kind *kind = &cluster->kinds[0];
    sf_arena arena = {0};
    sf_costs *costs = lay(cluster, &arena, 0, NULL);
    kind->launch = 0;
    kind->threads = 4;
    kind->products[SF_MATH_F32] = (sf_curve){2, flops, alone};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double batches = cases[i].batches;
        sf_effort product = {
            .product = true, .math = SF_MATH_F32, .flops = 1e3 * batches, .batches = batches};
        kind->batched[SF_MATH_F32] = (sf_curve){0};
        assert_close(sf_costs_op(costs, &product), 1e-6 * batches);
        kind->batched[SF_MATH_F32] = (sf_curve){2, flops, among};
        assert_close(sf_costs_op(costs, &product), cases[i].seconds);
    }
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* As many threads share passes of a loop as have a part in it; idle ones do not help. */
static void test_shares(void **state)
{
    (void)state;
    static const struct {
        double threads, shares, units, seconds;
    } cases[] = {{0, 1, 0, 3e-3},          {1, 1, 0, 3e-3},    {8, 0, 0, 3e-3},
                 {8, 8, 0, 3e-3},          {8, 99, 0, 3e-3},   {8, 2, 0, 4 * 3e-3},
                 {8, 1, 0, 8 * 3e-3},      {8, 99, 800, 3e-3}, {8, 9, 9, 16 * 3e-3 / 9},
                 {4, 3, 7, 12e-3 * 3 / 7}, {1, 5, 5, 3e-3}};
    static const double bytes[] = {1, 1e12}, nothing[] = {1e-15, 1e-14};
    sf_cluster *cluster = make("1x1xCPU-core");
    sf_device_kind *kind = &cluster->kinds[0];
    sf_arena arena = {0};
    sf_costs *costs = lay(cluster, &arena, 0, NULL);
    kind->launch = 0;
    kind->loops = (sf_curve){2, bytes, nothing};
    kind->fold = kind->divide = 1e-9;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kind->threads = cases[i].threads;
        sf_effort loop = {.bytes = 1,
                          .counted = true,
                          .shares = cases[i].shares,
                          .units = cases[i].units,
                          .passes = {.divides = 1e6, .folds = 2e6}};
        assert_close(sf_costs_op(costs, &loop), cases[i].seconds);
    }
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* Near data takes less, as measured; never less than if all of it were nearest, and a product never
 * less than half. */
static void test_near(void **state)
{
    (void)state;
    static const double bytes[] = {1, 1e12}, seconds[] = {4e-9, 4e3}, flops[] = {1e3},
                        product_seconds[] = {1e-3};
    static const double distances[] = {65536, 1 << 20, 1 << 27}, paces[] = {1e-9, 2e-9, 4e-9};
    sf_cluster *cluster = make("1x1xCPU-core");
    sf_device_kind *kind = &cluster->kinds[0];
    sf_arena arena = {0};
    sf_costs *costs = lay(cluster, &arena, 0, NULL);
    kind->launch = 0;
    kind->loops = (sf_curve){2, bytes, seconds};
    sf_effort loop = {.bytes = 1e6};
    loop.near[0] = 5e5;
    assert_false(sf_costs_sees_near(costs));
    assert_close(sf_costs_op(costs, &loop), 4e-3);
    kind->paces = (sf_curve){3, distances, paces};
    assert_true(sf_costs_sees_near(costs));
    assert_close(sf_costs_op(costs, &loop), 5e5 * 1e-9 + 5e5 * 4e-9);
    loop.near[4] = 5e5; /* 1 MiB */
    assert_close(sf_costs_op(costs, &loop), 5e5 * 1e-9 + 5e5 * 2e-9);
    loop.near[0] = 1e6;
    loop.near[4] = 0;
    assert_close(sf_costs_op(costs, &loop), 1e6 * 1e-9);
    loop.near[0] = 0;
    loop.near[SF_NEAR_STEPS - 1] = 1e6;
    assert_close(sf_costs_op(costs, &loop), 4e-3);
    sf_effort product = {.product = true, .math = SF_MATH_F32, .flops = 1e3, .bytes = 1e5};
    kind->products[SF_MATH_F32] = (sf_curve){1, flops, product_seconds};
    assert_close(sf_costs_op(costs, &product), 1e-3);
    product.near[0] = 1e5;
    assert_close(sf_costs_op(costs, &product), 1e-3 - 1e5 * 3e-9);
    product.bytes = product.near[0] = 2.4e5;
    assert_close(sf_costs_op(costs, &product), 0.5e-3);
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* Measured times on an H200, in microseconds, by other programs than those that its curves are from: products of square matrices by
 * cuBLAS 13, and sums of two f32 tensors, which are faster than most loops of steps. */
static void test_real_device(void **state)
{
    (void)state;
    static const struct {
        sf_math math;
        double within;
        struct {
            int n;
            double us;
        } products[6];
    } measured[] = {
        {SF_MATH_BF16,
         0.3,
         {{128, 2.6}, {512, 3.8}, {1024, 5.8}, {2048, 23.7}, {4096, 170}, {8192, 1506}}},
        {SF_MATH_F64,
         0.65,
         {{128, 3.7}, {512, 9.0}, {1024, 42.9}, {2048, 288}, {3072, 938}, {4096, 2225}}},
        {SF_MATH_F32,
         0.65,
         {{128, 4.8}, {512, 13.3}, {1024, 56.6}, {2048, 344}, {3072, 1292}, {4096, 2691}}},
        {SF_MATH_TF32,
         0.6,
         {{128, 4.1}, {512, 7.6}, {1024, 13.1}, {2048, 48}, {4096, 338}, {8192, 2992}}},
    };
    static const struct {
        double bytes, us;
    } sums[] = {{3e3, 1.63}, {2e5, 1.54}, {5.03e7, 12.1}, {2.01e8, 48.4}, {3.22e9, 733}};
    sf_cluster *cluster = make("1x1xH200");
    sf_arena arena = {0};
    sf_costs *costs = lay(cluster, &arena, 0, NULL);
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
        for (int p = 0; p < 6; p++) {
            double n = measured[i].products[p].n;
            sf_effort effort = {.product = true,
                                .math = measured[i].math,
                                .flops = 2 * n * n * n,
                                .depth = n,
                                .bytes = 1};
            double ratio = 1e6 * sf_costs_op(costs, &effort) / measured[i].products[p].us;
            if (fabs(ratio - 1) > measured[i].within)
                fail_msg("%s, %.0f: %.2f of what it took", sf_math_name(measured[i].math), n,
                         ratio);
        }
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        sf_effort effort = {.product = false,
                            .math = SF_MATH_F32,
                            .flops = sums[i].bytes / 12,
                            .bytes = sums[i].bytes};
        assert_true(fabs(1e6 * sf_costs_op(costs, &effort) / sums[i].us - 1) < 0.35);
    }
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

/* Whatever a product is cut into, its pieces take no less in all than is said to be the least. */
static void test_least(void **state)
{
    (void)state;
    static const double flops[] = {1e3, 3e4, 1e6, 7e8}, seconds[] = {2e-6, 3e-6, 6e-4, 2e-1},
                        deep[] = {3e-6, 4e-6, 1e-4, 1e-1}, bytes[] = {1e3, 2e5, 1e7},
                        moved[] = {1e-6, 4e-6, 9e-4}, depths[] = {16, 256}, near[] = {1e5, 1e7},
                        paces[] = {2e-11, 9e-11};
    const sf_curve by_depth[] = {{4, flops, seconds}, {4, flops, deep}};
    sf_gpu gpu = {.products[SF_MATH_BF16] = {2, depths, by_depth},
                  .units[SF_UNIT_CONVOLUTION][SF_MATH_BF16] = {4, flops, deep}},
           no_products = {.units[SF_UNIT_CONVOLUTION][SF_MATH_BF16] = {4, flops, seconds}};
    for (int way = 0; way < 5; way++) {
        sf_arena arena = {0};
        sf_cluster *cluster = make("1xH100");
        sf_costs *costs = lay(cluster, &arena, 0, NULL);
        sf_device_kind *kind = &cluster->kinds[0];
        if (way > 0) {
            kind->loops = (sf_curve){3, bytes, moved};
            kind->products[SF_MATH_BF16] = (sf_curve){4, flops, seconds};
        }
        if (way > 1)
            kind->paces = (sf_curve){2, near, paces};
        kind->gpu = way > 3 ? &no_products : way > 2 ? &gpu : NULL;
        for (int i = 0; i < 3000; i++) {
            int pieces = 1 + i % 61;
            sf_effort all = {.product = i % 5 > 0,
                             .math = SF_MATH_BF16,
                             .flops = pow(10, 3 + i % 7),
                             .bytes = pow(10, 3 + i % 11 * 0.5),
                             .unit = i % 3 ? SF_UNIT_OTHER : SF_UNIT_CONVOLUTION,
                             .depth = 16 << i % 6};
            sf_effort piece = all;
            piece.flops /= pieces;
            piece.bytes /= pieces;
            piece.depth = fmax(1, all.depth / (1 + i % 4));
            piece.batches = 1 + i % 2;
            piece.unit = i % 4 ? all.unit : SF_UNIT_OTHER; /* as of one window */
            for (int s = 0; s < SF_NEAR_STEPS; s++)
                piece.near[s] = s == i % SF_NEAR_STEPS ? piece.bytes : 0;
            double least = sf_costs_least(costs, 0, &all);
            assert_true(least > 0);
            assert_true(least <= pieces * sf_costs_op(costs, &piece) * (1 + 1e-9));
        }
        kind->gpu = NULL;
        sf_arena_free(&arena);
        sf_cluster_free(cluster);
    }
}

static void test_curve(void **state)
{
    (void)state;
    const double amounts[] = {1, 100, 1000}, seconds[] = {1, 10, 10};
    sf_curve curve = {3, amounts, seconds};
    assert_close(sf_curve_at(&curve, 0), 1);
    assert_close(sf_curve_at(&curve, 1), 1);
    assert_close(sf_curve_at(&curve, 10), sqrt(10));
    assert_close(sf_curve_at(&curve, 100), 10);
    assert_close(sf_curve_at(&curve, 500), 10);
    assert_close(sf_curve_at(&curve, 2000), 20);
    sf_arena arena = {0};
    const double noisy[] = {3, 2, 4};
    sf_curve fit = sf_curve_fit(3, amounts, noisy, &arena);
    assert_true(fit.seconds[0] == 2 && fit.seconds[1] == 2 && fit.seconds[2] == 4);
    sf_arena_free(&arena);
}

/* Where something was measured, that is the answer; elsewhere the formula. */
static void test_measured(void **state)
{
    (void)state;
    const double amounts[] = {1e3, 1e6}, seconds[] = {1e-3, 1e-2};
    sf_curve curve = {2, amounts, seconds};
    sf_cluster *plain = make("2x4xCPU"), *cluster = make("2x4xCPU");
    sf_measured measured[] = {{SF_ALL_REDUCE, {4, 1, 1}, curve}, {SF_PERMUTE, {2, 2, 1}, curve}};
    cluster->measured = measured;
    cluster->nmeasured = 2;
    cluster->kinds[0].products[SF_MATH_F32] = curve;
    cluster->kinds[0].loops = curve;
    sf_arena arena = {0};
    sf_costs *with = LAY(cluster, &arena, 2, 2, 2), *without = LAY(plain, &arena, 2, 2, 2);
    for (uint32_t axes = 0; axes < 8; axes++)
        for (int k = 0; k < SF_COLLECTIVE_COUNT; k++) {
            bool known =
                (k == SF_ALL_REDUCE && axes == 6) || (k == SF_PERMUTE && (axes == 3 || axes == 5));
            sf_algorithm how;
            double found = sf_costs_collective_how(with, (sf_collective)k, axes, 1e6, &how);
            assert_int_equal(how == SF_ALGORITHM_MEASURED, known);
            assert_close(found,
                         known ? 1e-2 : sf_costs_collective(without, (sf_collective)k, axes, 1e6));
        }
    sf_effort product = {.product = true, .math = SF_MATH_BF16, .flops = 1e6, .bytes = 1},
              loop = {.product = false, .math = SF_MATH_F32, .flops = 1e8, .bytes = 1e6};
    assert_close(sf_costs_op(with, &product), 1e-2);
    assert_close(sf_costs_op(with, &loop), 1e-2 + 1e8 / plain->kinds[0].vector_flops);
    sf_arena_free(&arena);
    sf_cluster_free(plain);
    sf_cluster_free(cluster);
}

static void test_wrong_meshes(void **state)
{
    (void)state;
    sf_cluster *cluster = make("2x4xCPU");
    sf_arena arena = {0};
    sf_costs *costs;
    const int nine[] = {9}, zero[] = {0}, huge[] = {1 << 30, 1 << 30, 1 << 30}, four[] = {2, 2};
    assert_int_equal(sf_costs_new(cluster, 1, nine, 0, &arena, NULL, &costs), SF_EUSAGE);
    assert_int_equal(sf_costs_new(cluster, 1, zero, 0, &arena, NULL, &costs), SF_EUSAGE);
    assert_int_equal(sf_costs_new(cluster, 3, huge, 0, &arena, NULL, &costs), SF_EUSAGE);
    assert_int_equal(sf_costs_new(cluster, 2, four, 5, &arena, NULL, &costs), SF_EUSAGE);
    assert_int_equal(sf_costs_new(cluster, 2, four, -1, &arena, NULL, &costs), SF_EUSAGE);
    assert_int_equal(sf_costs_new(cluster, 2, four, 4, &arena, NULL, &costs), SF_OK);
    assert_int_equal(sf_costs_group_level(costs, 3), 0);
    sf_arena_free(&arena);
    sf_cluster_free(cluster);
}

static double seconds_of_questions(const sf_costs *costs)
{
    struct timespec from, to;
    double sum = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (int i = 0; i < 300000; i++)
        sum += sf_costs_collective(costs, (sf_collective)(i % SF_COLLECTIVE_COUNT),
                                   (uint32_t)(i / 8 % 8), i);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    assert_true(sum > 0);
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

/* A question about 1,024 devices takes no longer than one about 16: twice, to be safe from noise. */
static void test_speed(void **state)
{
    (void)state;
    sf_cluster *small = make("2x8xV100"), *large = make("128x8xV100");
    sf_arena arena = {0};
    sf_costs *few = LAY(small, &arena, 2, 2, 4), *many = LAY(large, &arena, 128, 2, 4);
    double least_few = HUGE_VAL, least_many = HUGE_VAL;
    for (int turn = 0; turn < 5; turn++) {
        least_few = fmin(least_few, seconds_of_questions(few));
        least_many = fmin(least_many, seconds_of_questions(many));
    }
    print_message("a question: %.0f ns on 16 devices, %.0f ns on 1024\n", least_few / 300000 * 1e9,
                  least_many / 300000 * 1e9);
    assert_true(least_many < 2 * least_few);
    sf_arena_free(&arena);
    sf_cluster_free(small);
    sf_cluster_free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct_links),   cmocka_unit_test(test_one_level),
        cmocka_unit_test(test_shared_lanes),   cmocka_unit_test(test_two_levels),
        cmocka_unit_test(test_three_levels),   cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_uneven),         cmocka_unit_test(test_library),
        cmocka_unit_test(test_expected_order), cmocka_unit_test(test_work),
        cmocka_unit_test(test_measured_work),  cmocka_unit_test(test_gpu),
        cmocka_unit_test(test_least),          cmocka_unit_test(test_batched),
        cmocka_unit_test(test_shares),         cmocka_unit_test(test_near),
        cmocka_unit_test(test_real_device),    cmocka_unit_test(test_curve),
        cmocka_unit_test(test_measured),       cmocka_unit_test(test_wrong_meshes),
        cmocka_unit_test(test_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
