/* What plans hardly do better. */
#include <math.h>

#include "search/search.h"

/* What an instruction of the unsplit program does, with all that it reads near. */
static sf_effort whole_effort(const sf_efforts *efforts, uint32_t inst, const sf_layout *replicated)
{
    static const sf_mesh one = {.naxes = 1, .axes = {{"all", 1}}};
    sf_effort joint = {0};
    for (uint32_t k = efforts->first_of[inst]; k < efforts->first_of[inst + 1]; k++) {
        const sf_node *node = efforts->graph->nodes[efforts->nodes_of[k]];
        sf_effort effort = sf_effort_of(efforts, node, replicated, &one);
        sf_effort_join(&joint, &effort);
    }
    joint.near[0] = joint.bytes;
    joint.calls = 1; /* the batch of a product may be split until it takes one */
    return joint;
}

/* Every tensor is charged at most an n-th of its bytes less than whole, and every loop is cut into n
 * parts at most: so no layouts give an instruction less to do than an n-th of what it is when replicated. */
static sf_effort part_of(sf_effort effort, int parts)
{
    effort.flops /= parts;
    effort.vector /= parts;
    effort.bytes /= parts;
    effort.near[0] /= parts;
    return effort;
}

/* By instruction, in the arena; those without effort do nothing. */
static sf_effort *find_whole(const sf_efforts *efforts, sf_arena *arena)
{
    const sf_graph *graph = efforts->graph;
    uint32_t most = 1;
    for (size_t i = 0; i < graph->nnodes; i++) {
        uint32_t tensors = graph->nodes[i]->noperands + graph->nodes[i]->nresults;
        most = tensors > most ? tensors : most;
    }
    sf_layout *replicated = SF_ARRAY(arena, most, sf_layout);
    sf_effort *whole = SF_ARRAY(arena, efforts->ninsts, sf_effort);
    for (uint32_t i = 0; i < efforts->ninsts; i++)
        whole[i] = whole_effort(efforts, i, replicated);
    return whole;
}

static bool is_work(const sf_effort *effort)
{
    return effort->flops > 0 || effort->bytes > 0;
}

double sf_least_unstaged_estimate(const sf_efforts *efforts, const sf_costs *costs, int devices)
{
    sf_arena arena = {0};
    const sf_effort *whole = find_whole(efforts, &arena);
    double seconds = 0;
    for (uint32_t i = 0; i < efforts->ninsts; i++) {
        sf_effort least = part_of(whole[i], devices);
        seconds += is_work(&least) ? sf_costs_op_shared(costs, &least) : 0;
    }
    sf_arena_free(&arena);
    return seconds;
}

/* Seconds of a device for all of the instruction, in one piece or in those that take the least. */
static double least_seconds(const sf_costs *costs, int kind, const sf_effort *whole, int pieces)
{
    double least = HUGE_VAL;
    for (int p = 1; is_work(whole) && p <= pieces; p *= 2) {
        sf_effort piece = part_of(*whole, p);
        least = fmin(least, p * sf_costs_op_on(costs, kind, &piece));
    }
    return is_work(whole) ? least : 0;
}

/* By kind: weights whose sum over the devices is one, more for the faster. */
static double *weigh_kinds(const sf_costs *costs, const double *seconds, uint32_t ninsts,
                           sf_arena *arena)
{
    int nkinds = sf_costs_kinds(costs);
    double *weights = SF_ARRAY(arena, nkinds, double), all = 0;
    for (int k = 0; k < nkinds; k++) {
        double busy = 0;
        for (uint32_t i = 0; i < ninsts; i++)
            busy += seconds[(size_t)k * ninsts + i];
        weights[k] = busy > 0 ? 1 / busy : 1;
        all += weights[k] * sf_costs_count(costs, k);
    }
    for (int k = 0; k < nkinds; k++)
        weights[k] /= all;
    return weights;
}

/* No device is busy for longer than the step takes, so neither is a weighted mean of them; and a share of an instruction adds
 * that share of what it adds where it adds the least. */
double sf_least_estimate(const sf_efforts *efforts, const sf_costs *costs)
{
    enum { MOST_PIECES = 4096 }; /* parts of turns */
    sf_arena arena = {0};
    uint32_t ninsts = efforts->ninsts;
    int nkinds = sf_costs_kinds(costs);
    const sf_effort *whole = find_whole(efforts, &arena);
    double *seconds = SF_ARRAY(&arena, (size_t)nkinds * ninsts, double), bound = 0;
    for (int k = 0; k < nkinds; k++)
        for (uint32_t i = 0; i < ninsts; i++)
            seconds[(size_t)k * ninsts + i] = least_seconds(costs, k, &whole[i], MOST_PIECES);
    const double *weights = weigh_kinds(costs, seconds, ninsts, &arena);
    for (uint32_t i = 0; i < ninsts; i++) {
        double least = HUGE_VAL;
        for (int k = 0; k < nkinds; k++)
            least = fmin(least, weights[k] * seconds[(size_t)k * ninsts + i]);
        bound += least;
    }
    sf_arena_free(&arena);
    return bound;
}

/* Every value that stands in memory is there in equal parts at best, one on each device. */
double sf_memory_bound(const sf_efforts *efforts, int devices)
{
    const sf_graph *graph = efforts->graph;
    sf_arena arena = {0};
    double *change = SF_ARRAY(&arena, (size_t)efforts->ninsts + 2, double), held = 0, most = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        held += (double)sf_type_bytes(sf_type_of(graph, graph->top->arguments[i]));
    for (sf_value v = 0; v < graph->nvalues; v++) {
        uint32_t made = efforts->made[v], last = efforts->last[v];
        if (efforts->place[v] != v || !efforts->stored[v] || made == 0 || last < made)
            continue;
        double bytes = (double)sf_type_bytes(sf_type_of(graph, v));
        change[made] += bytes;
        change[last + 1] -= bytes;
    }
    for (uint32_t i = 0; i <= efforts->ninsts; i++) {
        held += change[i];
        most = fmax(most, held);
    }
    sf_arena_free(&arena);
    return most / devices;
}
