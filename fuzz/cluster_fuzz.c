/* Reads any text as a cluster, and as a shorthand. What is accepted is written and read again, and must
 * come out the same; and it is asked what a few things take, which must be numbers. */
#include <math.h>
#include <string.h>

#include "cluster/cost_model.h"
#include "guarded.h"
#include "outcome.h"

enum { MOST_ASKED = 4096 };

static void ask(const sf_cluster *cluster)
{
    sf_arena arena = {0};
    sf_costs *costs;
    int devices = cluster->ndevices < MOST_ASKED ? cluster->ndevices : MOST_ASKED;
    int half = devices / 2 > 0 ? devices / 2 : 1;
    const int sizes[] = {devices / half, half};
    sf_status status = sf_costs_new(cluster, 2, sizes, 0, &arena, NULL, &costs);
    SF_ASSERT(status == SF_OK);
    for (uint32_t axes = 0; axes < 4; axes++)
        for (int k = 0; k < SF_COLLECTIVE_COUNT; k++) {
            double small = sf_costs_collective(costs, (sf_collective)k, axes, 10);
            double large = sf_costs_collective(costs, (sf_collective)k, axes, 1e9);
            SF_ASSERT(isfinite(large) && small >= 0 && large >= small * (1 - 1e-9));
        }
    for (int m = 0; m < SF_MATH_COUNT; m++) {
        sf_effort effort = {.product = true, .math = (sf_math)m, .flops = 1e9, .bytes = 1e6};
        SF_ASSERT(isfinite(sf_costs_op(costs, &effort)));
    }
    sf_arena_free(&arena);
}

static void read_write_read(sf_str text, sf_diag *diag)
{
    sf_cluster *cluster, *recomputed;
    sf_status status = sf_cluster_read(text, "fuzz", diag, &cluster);
    fuzz_check_outcome(status, diag);
    if (status != SF_OK)
        return;
    sf_buf first = {0}, second = {0};
    sf_cluster_write(cluster, &first);
    status = sf_cluster_read((sf_str){first.text, first.length}, "again", diag, &recomputed);
    SF_ASSERT(status == SF_OK && sf_cluster_hash(cluster) == sf_cluster_hash(recomputed));
    sf_cluster_write(recomputed, &second);
    SF_ASSERT(strcmp(first.text, second.text) == 0);
    ask(cluster);
    sf_cluster_free(cluster);
    sf_cluster_free(recomputed);
    sf_buf_free(&first);
    sf_buf_free(&second);
}

static void make(sf_str text)
{
    sf_cluster *cluster;
    if (sf_cluster_make(text, NULL, &cluster) != SF_OK)
        return;
    ask(cluster);
    sf_cluster_free(cluster);
}

static void read_and_make(sf_str text, sf_arena *arena, sf_diag *diag)
{
    (void)arena;
    read_write_read(text, diag);
    make(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_guarded(read_and_make, data, size);
}
