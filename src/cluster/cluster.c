#include "cluster/cluster.h"

#include <string.h>

#include "base/boundary.h"
#include "base/hash.h"
#include "base/units.h"

void sf_cluster_free(sf_cluster *cluster)
{
    if (!cluster)
        return;
    sf_arena arena = cluster->arena; /* the cluster itself is in it */
    sf_arena_free(&arena);
}

int sf_cluster_devices(const sf_cluster *cluster)
{
    SF_NEED_OR(0, cluster);
    return cluster->ndevices;
}

sf_cluster *sf_cluster_new(void)
{
    sf_arena arena = {0};
    sf_cluster *cluster = SF_NEW(&arena, sf_cluster);
    cluster->arena = arena;
    cluster->name = cluster->source = "";
    return cluster;
}

sf_status sf_cluster_finish(sf_cluster *cluster, sf_loc loc, sf_diag *diag)
{
    int64_t nodes = 0, devices = 0;
    for (int r = 0; r < cluster->nruns; r++) {
        sf_nodes *run = &cluster->nodes[r];
        run->first_node = (int)nodes;
        run->first_device = (int)devices;
        nodes += run->count;
        devices += (int64_t)run->count * run->devices;
        if (devices > SF_MAX_DEVICES)
            return sf_fail(diag, SF_EINPUT, loc, "a cluster has at most %d devices",
                           SF_MAX_DEVICES);
    }
    cluster->nnodes = (int)nodes;
    cluster->ndevices = (int)devices;
    return SF_OK;
}

int64_t sf_cluster_memory_limit(const sf_cluster *cluster, int64_t limit, sf_diag *diag)
{
    int64_t most = 0;
    for (int r = 0; r < cluster->nruns; r++) {
        const sf_device_kind *kind = &cluster->kinds[cluster->nodes[r].kind];
        int64_t left = kind->memory - kind->reserve;
        most = left > most ? left : most;
    }
    if (limit <= most)
        return limit;
    sf_warn(diag, SF_NOWHERE,
            "the memory limit of %s exceeds what a device of the cluster leaves to a rank, %s, "
            "which is used instead",
            sf_text_bytes((double)limit).at, sf_text_bytes((double)most).at);
    return 0;
}

sf_device_place sf_cluster_place(const sf_cluster *cluster, int device)
{
    SF_ASSERT(device >= 0 && device < cluster->ndevices);
    int low = 0, high = cluster->nruns;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (cluster->nodes[middle].first_device <= device)
            low = middle;
        else
            high = middle;
    }
    const sf_nodes *run = &cluster->nodes[low];
    int node = run->first_node + (device - run->first_device) / run->devices;
    return (sf_device_place){low, node, cluster->rack_nodes ? node / cluster->rack_nodes : 0};
}

static uint64_t hash_double(uint64_t hash, double value)
{
    uint64_t bits;
    value += 0.0; /* one zero */
    memcpy(&bits, &value, sizeof bits);
    return sf_hash_mix(hash, bits);
}

static uint64_t hash_curve(uint64_t hash, const sf_curve *curve)
{
    hash = sf_hash_mix(hash, (uint64_t)curve->count);
    for (int i = 0; i < curve->count; i++) {
        hash = hash_double(hash, curve->amounts[i]);
        hash = hash_double(hash, curve->seconds[i]);
    }
    return hash;
}

static uint64_t hash_link(uint64_t hash, const sf_link *link)
{
    hash = hash_double(hash, link->latency);
    hash = hash_double(hash, link->bandwidth);
    hash = sf_hash_mix(hash, (uint64_t)link->lanes);
    return link->peer > 0 ? hash_double(hash, link->peer) : hash;
}

static uint64_t hash_gpu(uint64_t hash, const sf_gpu *gpu)
{
    for (int m = 0; m < SF_MATH_COUNT; m++) {
        for (int u = 0; u < SF_UNIT_COUNT; u++)
            hash = hash_curve(hash, &gpu->units[u][m]);
        for (int i = 0; i < gpu->products[m].count; i++)
            hash = hash_curve(hash_double(hash, gpu->products[m].depths[i]),
                              &gpu->products[m].curves[i]);
    }
    for (int t = 0; t < SF_TOUCH_COUNT; t++)
        hash = hash_curve(hash, &gpu->memory[t]);
    return hash;
}

static uint64_t hash_kind(uint64_t hash, const sf_device_kind *kind)
{
    const double numbers[] = {kind->vector_flops, kind->bandwidth, kind->product_share,
                              kind->memory_share, kind->ramp,      kind->launch,
                              kind->drag};
    hash = sf_hash_mix(hash, (uint64_t)kind->memory);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = hash_double(hash, numbers[i]);
    for (int m = 0; m < SF_MATH_COUNT; m++) {
        hash = hash_double(hash, kind->flops[m]);
        hash = hash_curve(hash, &kind->products[m]);
    }
    if (kind->threads > 0)
        hash = hash_double(hash, kind->threads);
    hash = hash_curve(hash, &kind->loops);
    const double later[] = {kind->divide,       kind->function,   kind->fold,
                            kind->strided,      kind->run,        kind->pack,
                            kind->pack_across,  kind->pack_run,   kind->host_bandwidth,
                            kind->host_latency, kind->transposed, kind->transposed_run,
                            kind->window};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        hash = later[i] > 0 ? hash_double(sf_hash_mix(hash, i), later[i]) : hash;
    for (int m = 0; m < SF_MATH_COUNT; m++)
        if (kind->batched[m].count > 0)
            hash = hash_curve(sf_hash_mix(hash, (uint64_t)m), &kind->batched[m]);
    if (kind->paces.count > 0)
        hash = hash_curve(sf_hash_mix(hash, (uint64_t)kind->paces.count), &kind->paces);
    hash = kind->gpu ? hash_gpu(hash, kind->gpu) : hash;
    hash = kind->is_gpu && !kind->gpu ? sf_hash_mix(hash, 1) : hash;
    hash = kind->reserve > 0 ? sf_hash_mix(hash, (uint64_t)kind->reserve) : hash;
    hash = kind->is_plain ? sf_hash_mix(hash, 2) : hash;
    return kind->convolutions.count > 0 ? hash_curve(hash, &kind->convolutions) : hash;
}

/* Of one node of the run. */
static uint64_t hash_cluster_node(const sf_cluster *cluster, const sf_nodes *run)
{
    uint64_t hash = sf_hash_mix(0, (uint64_t)run->devices);
    hash = hash_kind(hash, &cluster->kinds[run->kind]);
    hash = hash_link(hash, &run->inside);
    return hash_link(hash, &run->network);
}

/* Runs of nodes that are equal count as one, so that it does not matter how they were written. */
uint64_t sf_cluster_hash(const sf_cluster *cluster)
{
    uint64_t hash = sf_hash_mix(0, (uint64_t)cluster->rack_nodes), pending = 0;
    int64_t count = 0;
    for (int r = 0; r < cluster->nruns; r++) {
        uint64_t node = hash_cluster_node(cluster, &cluster->nodes[r]);
        if (count > 0 && node != pending) {
            hash = sf_hash_mix(sf_hash_mix(hash, pending), (uint64_t)count);
            count = 0;
        }
        pending = node;
        count += cluster->nodes[r].count;
    }
    hash = sf_hash_mix(sf_hash_mix(hash, pending), (uint64_t)count);
    if (cluster->rack_nodes)
        hash = hash_link(hash, &cluster->uplink);
    for (int i = 0; i < cluster->nmeasured; i++) {
        const sf_measured *measured = &cluster->measured[i];
        hash = sf_hash_mix(hash, (uint64_t)measured->kind);
        for (int l = 0; l < SF_LEVELS; l++)
            hash = sf_hash_mix(hash, (uint64_t)measured->shape[l]);
        hash = hash_curve(hash, &measured->curve);
    }
    for (int i = 0; i < cluster->nseen; i++)
        hash = hash_double(sf_hash_mix(hash, cluster->seen[i].key), cluster->seen[i].seconds);
    return hash;
}
