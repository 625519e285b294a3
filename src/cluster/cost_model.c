/* Answers: a formula, or a look into a curve, for each shape that the groups have. */
#include <math.h>

#include "base/gemm_split.h"
#include "base/hash.h"
#include "cluster/group_shape.h"

const char *sf_algorithm_name(sf_algorithm algorithm)
{
    static const char *const names[SF_ALGORITHM_COUNT] = {"none", "ring", "tree", "hierarchical",
                                                          "measured"};
    return names[algorithm];
}

/* Collectives */

static void take_faster(double seconds, sf_algorithm algorithm, double *least, sf_algorithm *how)
{
    if (seconds >= *least)
        return;
    *least = seconds;
    *how = algorithm;
}

static double log2_ceil(int members)
{
    int steps = 0;
    while (1LL << steps < members)
        steps++;
    return steps;
}

typedef struct way {
    double ring, tree;
} way;

/* all_gather or reduce_scatter among n members. */
static way gather_way(int n, double latency, double bandwidth, double bytes)
{
    double whole = bytes / bandwidth;
    return (way){(n - 1) * latency + (double)(n - 1) / n * whole, log2_ceil(n) * latency + whole};
}

static way broadcast_way(int n, double latency, double bandwidth, double bytes)
{
    double whole = bytes / bandwidth;
    return (way){(n - 1) * latency + whole, log2_ceil(n) * (latency + whole)};
}

typedef way formula(int n, double latency, double bandwidth, double bytes);

/* The flat way over all levels, and level by level. */
static double staged_time(const sf_shape *s, formula *of, double bytes, sf_algorithm *how)
{
    double latency = 0, bandwidth = HUGE_VAL, least = HUGE_VAL, levels = 0;
    for (int l = 0; l < s->nlevels; l++) {
        const sf_level *at = &s->levels[l];
        latency = fmax(latency, at->latency);
        bandwidth = fmin(bandwidth, at->together);
        way stage = of(at->size, at->latency, at->together, bytes);
        levels += fmin(stage.ring, stage.tree);
    }
    way flat = of(s->members, latency, bandwidth, bytes);
    take_faster(flat.ring, SF_ALGORITHM_RING, &least, how);
    take_faster(flat.tree, SF_ALGORITHM_TREE, &least, how);
    if (s->even && s->nlevels > 1)
        take_faster(levels, SF_ALGORITHM_HIERARCHICAL, &least, how);
    return least;
}

static double all_to_all(const sf_shape *s, double bytes, sf_algorithm *how)
{
    double flat = 0, levels = 0, least = HUGE_VAL;
    for (int l = 0; l < s->nlevels; l++) {
        const sf_level *at = &s->levels[l];
        flat += at->reached * (at->latency + bytes / s->members / at->own);
        levels += (at->size - 1) * (at->latency + bytes / at->size / at->own);
    }
    take_faster(flat, SF_ALGORITHM_RING, &least, how);
    if (s->even && s->nlevels > 1)
        take_faster(levels, SF_ALGORITHM_HIERARCHICAL, &least, how);
    return least;
}

static double permute_time(const sf_shape *s, double bytes, sf_algorithm *how)
{
    double latency = 0, bandwidth = HUGE_VAL;
    for (int l = 0; l < s->nlevels; l++) {
        latency = fmax(latency, s->levels[l].latency);
        bandwidth = fmin(bandwidth, s->levels[l].own);
    }
    *how = SF_ALGORITHM_RING;
    return latency + bytes / bandwidth;
}

static double in_shape(const sf_shape *s, sf_collective kind, double bytes, sf_algorithm *how)
{
    *how = SF_ALGORITHM_NONE;
    if (s->members == 1)
        return 0;
    if (s->measured[kind]) {
        *how = SF_ALGORITHM_MEASURED;
        return sf_curve_at(s->measured[kind], bytes);
    }
    const sf_collective_info *info = sf_collective_get(kind);
    switch (info->route) {
    case SF_ROUTE_RING:
        return (info->reduces + info->gathers) * staged_time(s, gather_way, bytes, how);
    case SF_ROUTE_CHAIN:
        return staged_time(s, broadcast_way, bytes, how);
    case SF_ROUTE_DIRECT:
        return all_to_all(s, bytes, how);
    case SF_ROUTE_PEER:
        return permute_time(s, bytes, how);
    case SF_ROUTE_NONE:
        break;
    }
    return 0;
}

double sf_costs_collective_how(const sf_costs *costs, sf_collective kind, uint32_t axes,
                               double bytes, sf_algorithm *how)
{
    SF_ASSERT(axes < 1U << costs->naxes);
    const sf_shapes *g = &costs->groups[axes];
    double most = -1;
    for (size_t i = 0; i < g->count; i++) {
        sf_algorithm algorithm;
        double seconds = in_shape(&g->shapes[i], kind, bytes, &algorithm);
        if (seconds <= most)
            continue;
        most = seconds;
        *how = algorithm;
    }
    return most;
}

double sf_costs_collective(const sf_costs *costs, sf_collective kind, uint32_t axes, double bytes)
{
    sf_algorithm how;
    return sf_costs_collective_how(costs, kind, axes, bytes, &how);
}

int sf_costs_group_size(const sf_costs *costs, uint32_t axes)
{
    return costs->groups[axes].shapes[0].members;
}

bool sf_costs_group_shape(const sf_costs *costs, uint32_t axes, int shape[SF_LEVELS])
{
    const sf_shapes *g = &costs->groups[axes];
    for (int l = 0; l < SF_LEVELS; l++)
        shape[l] = g->shapes[0].sizes[l];
    return g->count == 1 && g->shapes[0].even;
}

int sf_costs_group_level(const sf_costs *costs, uint32_t axes)
{
    const sf_shapes *g = &costs->groups[axes];
    int outmost = -1;
    for (size_t i = 0; i < g->count; i++) {
        const sf_shape *s = &g->shapes[i];
        if (s->nlevels > 0 && s->levels[s->nlevels - 1].level > outmost)
            outmost = s->levels[s->nlevels - 1].level;
    }
    return outmost;
}

uint32_t sf_costs_group_links(const sf_costs *costs, uint32_t axes)
{
    const sf_shapes *g = &costs->groups[axes];
    uint32_t links = 0;
    for (size_t i = 0; i < g->count; i++)
        for (int l = 0; l < g->shapes[i].nlevels; l++)
            links |= 1u << g->shapes[i].levels[l].level;
    return links;
}

/* Ops */

sf_math sf_math_done(const sf_device_kind *kind, sf_math math)
{
    if (kind->flops[math] > 0 || kind->products[math].count > 0)
        return math;
    return math == SF_MATH_F8 ? sf_math_done(kind, SF_MATH_F16) : SF_MATH_F32;
}

static double packing_seconds(const sf_device_kind *kind, const sf_packing *packing)
{
    sf_cut cut = {.rows = 1, .columns = 1};
    if (packing->rows > 0 && kind->threads > 1)
        cut = sf_cut_make(1, packing->rows, packing->features, packing->steps, SF_CUT_ROWS,
                          SF_CUT_COLUMNS, (int)kind->threads);
    double windows = (packing->elements - packing->kernel) * kind->pack +
                     packing->across * kind->pack_across + packing->runs * kind->pack_run;
    return windows * (double)cut.columns + packing->kernel * kind->pack * (double)cut.rows;
}

/* Products one after the other, each by all threads, or, where that is faster, each by one of them. */
static double batches_seconds(const sf_device_kind *kind, sf_math math, double flops,
                              double batches)
{
    double in_turns = batches * sf_curve_at(&kind->products[math], flops / batches);
    if (kind->batched[math].count == 0 || kind->threads == 0)
        return in_turns;
    double rounds = ceil(batches / kind->threads) * kind->threads;
    return fmin(in_turns, rounds * sf_curve_at(&kind->batched[math], flops / batches));
}

static double product_seconds(const sf_device_kind *kind, const sf_effort *effort)
{
    sf_math math = sf_math_done(kind, effort->math);
    double batches = fmax(1, effort->batches), packing = packing_seconds(kind, &effort->packing);
    if (effort->packing.runs > 0 && kind->convolutions.count > 0 && math == SF_MATH_F32)
        return sf_curve_at(&kind->convolutions, effort->flops) + packing;
    if (kind->products[math].count > 0)
        return batches_seconds(kind, math, effort->flops, batches) + packing;
    return kind->ramp + effort->flops / (kind->product_share * kind->flops[math]);
}

/* The ratio of its time to that with an equal part for all threads, which was measured. */
static double idle_factor(const sf_device_kind *kind, const sf_effort *effort)
{
    if (effort->shares <= 0 || kind->threads <= 0)
        return 1;
    double parts = fmin(kind->threads, effort->shares), units = effort->units;
    double largest = units > 0 ? ceil(units / parts) / units : 1 / parts;
    return kind->threads * largest;
}

/* `flops` where passes were not counted, or not measured. */
static double passes_seconds(const sf_device_kind *kind, const sf_effort *effort, double flops)
{
    const sf_passes *p = &effort->passes;
    if (!effort->counted || kind->fold == 0)
        return flops / kind->vector_flops;
    double all = (p->light + p->copies) / kind->vector_flops + p->divides * kind->divide +
                 p->functions * kind->function + p->folds * kind->fold +
                 p->strided * kind->strided + p->runs * kind->run;
    return idle_factor(kind, effort) * all;
}

double sf_near_distance(int step)
{
    const double nearest = 64 << 10;
    return ldexp(nearest, step);
}

bool sf_costs_sees_near(const sf_costs *costs)
{
    for (int i = 0; i < costs->nkinds; i++)
        if (costs->kinds[i]->paces.count > 0)
            return true;
    return false;
}

/* The time that the op saves because some of its bytes are near. */
static double near_saving(const sf_device_kind *kind, const sf_effort *effort)
{
    const sf_curve *paces = &kind->paces;
    double saving = 0;
    for (int s = 0; s < SF_NEAR_STEPS && paces->count > 0; s++) {
        double pace =
            sf_curve_at(paces, fmin(sf_near_distance(s), paces->amounts[paces->count - 1]));
        saving += effort->near[s] * (paces->seconds[paces->count - 1] - pace);
    }
    return saving;
}

/* An epilogue begins when the product is done: its bytes take time, as those of a loop. */
static double after_seconds(const sf_device_kind *kind, const sf_effort *effort, double memory)
{
    bool in_turns = kind->loops.count > 0 && effort->bytes > 0;
    return in_turns ? memory * effort->after / effort->bytes : 0;
}

/* The least share of arithmetic in the time of a product with far operands. */
#define LEAST_PRODUCT 0.5

static double work_seconds(const sf_device_kind *kind, const sf_effort *effort)
{
    double saving = near_saving(kind, effort),
           compute = effort->product ? product_seconds(kind, effort)
                                     : passes_seconds(kind, effort, effort->flops);
    double memory = kind->loops.count > 0 ? sf_curve_at(&kind->loops, effort->bytes)
                                          : effort->bytes / (kind->memory_share * kind->bandwidth);
    memory =
        fmax(memory - saving, kind->paces.count > 0 ? effort->bytes * kind->paces.seconds[0] : 0);
    if (effort->product)
        compute = fmax(compute - saving, LEAST_PRODUCT * compute);
    bool in_turns = !effort->product && kind->loops.count > 0;
    double seconds = fmax(kind->launch, in_turns ? compute + memory : fmax(compute, memory));
    if (!effort->product)
        return seconds;
    return seconds + passes_seconds(kind, effort, effort->vector) +
           after_seconds(kind, effort, memory);
}

static double gpu_product(const sf_device_kind *kind, const sf_effort *effort)
{
    sf_math math = sf_math_done(kind, effort->math);
    double calls = fmax(1, effort->calls), flops = effort->flops * fmax(1, effort->padding) / calls;
    double seconds = sf_gpu_seconds(kind->gpu, effort->unit, math, effort->depth, flops);
    if (seconds == 0)
        seconds = flops / (kind->product_share * kind->flops[math]);
    return calls * seconds;
}

static double gpu_passes(const sf_device_kind *kind, const sf_effort *effort)
{
    const sf_passes *p = &effort->passes;
    if (effort->touch == SF_TOUCH_MOVES)
        return effort->flops * kind->window;
    if (p->folds > 0 && p->strided > 0 && kind->transposed > 0)
        return p->folds * kind->transposed + p->runs * kind->transposed_run;
    return passes_seconds(kind, effort, effort->flops);
}

/* Both at the same time, and near data does not shorten compute. */
static double gpu_seconds(const sf_device_kind *kind, const sf_effort *effort)
{
    const sf_curve *curve = &kind->gpu->memory[effort->touch];
    double compute = effort->product ? gpu_product(kind, effort) : gpu_passes(kind, effort);
    double far = sf_curve_at(curve->count > 0 ? curve : &kind->loops, effort->bytes);
    double memory = kind->paces.count == 0 ? far
                                           : fmax(far - near_saving(kind, effort),
                                                  effort->bytes * kind->paces.seconds[0]);
    return fmax(kind->launch, fmax(compute, memory));
}

static double op_seconds(const sf_device_kind *kind, const sf_effort *effort)
{
    return kind->gpu ? gpu_seconds(kind, effort) : work_seconds(kind, effort);
}

double sf_costs_op(const sf_costs *costs, const sf_effort *effort)
{
    double most = 0;
    for (int i = 0; i < costs->nkinds; i++)
        most = fmax(most, op_seconds(costs->kinds[i], effort));
    return most;
}

bool sf_costs_have_seen(const sf_costs *costs)
{
    return costs->cluster->nseen > 0;
}

bool sf_costs_seen(const sf_costs *costs, uint64_t key, double *seconds)
{
    const sf_seen_op *seen = costs->cluster->seen;
    int low = 0, high = costs->cluster->nseen;
    while (low < high) {
        int middle = (low + high) / 2;
        if (seen[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == costs->cluster->nseen || seen[low].key != key)
        return false;
    *seconds = seen[low].seconds;
    return true;
}

int sf_costs_kinds(const sf_costs *costs)
{
    return costs->nkinds;
}

int sf_costs_count(const sf_costs *costs, int kind)
{
    return costs->counts[kind];
}

double sf_costs_op_on(const sf_costs *costs, int kind, const sf_effort *effort)
{
    return op_seconds(costs->kinds[kind], effort);
}

/* A convolution may become a plain product, and each device packs its own operands, or none. */
static double least_product(const sf_device_kind *kind, const sf_effort *effort)
{
    sf_math math = sf_math_done(kind, effort->math);
    double flops = effort->flops, least = HUGE_VAL;
    if (kind->gpu) {
        double by_peak = kind->gpu->products[math].count > 0
                             ? HUGE_VAL
                             : flops / (kind->product_share * kind->flops[math]);
        least = sf_gpu_least(kind->gpu, effort->unit, math, effort->depth, flops);
        return least > 0 ? fmin(least, by_peak) : by_peak;
    }
    if (effort->packing.runs > 0 && kind->convolutions.count > 0 && math == SF_MATH_F32)
        least = sf_curve_least(&kind->convolutions, flops);
    if (kind->batched[math].count > 0)
        least = fmin(least, sf_curve_least(&kind->batched[math], flops));
    if (kind->products[math].count > 0)
        least = fmin(least, sf_curve_least(&kind->products[math], flops));
    else
        least = fmin(least, flops / (kind->product_share * kind->flops[math]));
    return kind->paces.count > 0 ? LEAST_PRODUCT * least : least;
}

static double least_memory(const sf_device_kind *kind, double bytes)
{
    if (kind->paces.count > 0)
        return bytes * kind->paces.seconds[0];
    if (kind->loops.count > 0)
        return sf_curve_least(&kind->loops, bytes);
    return bytes / (kind->memory_share * kind->bandwidth);
}

double sf_costs_least(const sf_costs *costs, int kind, const sf_effort *effort)
{
    const sf_device_kind *of = costs->kinds[kind];
    double compute = effort->product ? least_product(of, effort) : 0;
    return fmax(compute, least_memory(of, effort->bytes));
}

double sf_costs_op_shared(const sf_costs *costs, const sf_effort *effort)
{
    double rate = 0;
    for (int i = 0; i < costs->nkinds; i++)
        rate += costs->counts[i] / op_seconds(costs->kinds[i], effort);
    return costs->size / rate;
}

static double copy_seconds(const sf_device_kind *kind, double bytes)
{
    if (kind->host_bandwidth > 0)
        return kind->host_latency + bytes / kind->host_bandwidth;
    return kind->launch + 2 * bytes / (kind->memory_share * kind->bandwidth);
}

double sf_costs_copy(const sf_costs *costs, double bytes)
{
    double most = 0;
    for (int i = 0; i < costs->nkinds; i++)
        most = fmax(most, copy_seconds(costs->kinds[i], bytes));
    return most;
}

double sf_costs_drag(const sf_costs *costs)
{
    double most = 0;
    for (int i = 0; i < costs->nkinds; i++)
        most = fmax(most, costs->kinds[i]->drag);
    return most;
}

bool sf_costs_on_gpu(const sf_costs *costs)
{
    return costs->kinds[0]->gpu != NULL;
}

int sf_costs_threads(const sf_costs *costs)
{
    double most = 0;
    for (int i = 0; i < costs->nkinds; i++)
        most = fmax(most, costs->kinds[i]->threads);
    return (int)most;
}

int64_t sf_costs_memory(const sf_costs *costs)
{
    return costs->memory;
}
