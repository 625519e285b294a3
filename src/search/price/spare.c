#include "search/price/spare.h"

#include <math.h>
#include <stdlib.h>

#include "search/price/estimate_memory.h"

/* What is made here is last read in the forward pass. */
static void leave_out(sf_efforts *efforts, const bool *recomputed)
{
    const sf_graph *graph = efforts->graph;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (!recomputed[node->id])
            continue;
        for (uint32_t r = 0; r < node->nresults; r++) {
            sf_value value = node->result + r;
            if (efforts->place[value] == value)
                efforts->last[value] = efforts->made[value];
        }
    }
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        uint32_t inst = efforts->nodes[node->id].inst;
        for (uint32_t o = 0; o < node->noperands && node->phase == SF_FORWARD && inst != SF_NONE;
             o++) {
            sf_value place = efforts->place[node->operands[o]];
            const sf_node *maker = place == SF_NONE ? NULL : sf_maker(graph, place);
            if (maker && recomputed[maker->id] && efforts->last[place] < inst)
                efforts->last[place] = inst;
        }
    }
}

const sf_efforts *sf_efforts_spare(const sf_efforts *efforts, const bool *recomputed,
                                   int64_t memory, sf_arena *arena)
{
    const sf_graph *graph = efforts->graph;
    sf_efforts *sparing = SF_NEW(arena, sf_efforts);
    *sparing = *efforts;
    sparing->last = sf_arena_copy(arena, efforts->last, graph->nvalues * sizeof *efforts->last);
    sparing->spare = SF_NEW(arena, sf_spare);
    *sparing->spare = (sf_spare){
        .memory = memory,
        .recomputed = sf_arena_copy(arena, recomputed, graph->nnodes * sizeof *recomputed),
        .kept = efforts->last};
    leave_out(sparing, recomputed);
    if (efforts->plain)
        sparing->plain = sf_efforts_spare(efforts->plain, recomputed, memory, arena);
    return sparing;
}

/* A node that can be computed again: what that takes, and what it would keep, of a rank. */
typedef struct rerun {
    double seconds, bytes;
} rerun;

static int by_seconds_a_byte(const void *a, const void *b)
{
    const rerun *x = a, *y = b;
    double left = x->seconds * y->bytes, right = y->seconds * x->bytes;
    return (left > right) - (left < right);
}

/* Bytes that the node keeps for the backward pass unless it is computed again. */
static double kept_bytes(const sf_efforts *efforts, const sf_node *node,
                         const sf_reshards *reshards)
{
    const sf_layout *layouts = &reshards->plan->nodes[node->id][node->noperands];
    double bytes = 0;
    for (uint32_t r = 0; r < node->nresults; r++) {
        sf_value value = node->result + r;
        if (efforts->place[value] == value && efforts->stored[value] &&
            efforts->last[value] < efforts->spare->kept[value])
            bytes += sf_shard_bytes(sf_type_of(efforts->graph, value), &layouts[r],
                                    &reshards->plan->mesh);
    }
    return bytes;
}

/* What is no product does not start an instruction: it runs in one loop with what reads it. */
static double own_seconds(const sf_efforts *efforts, const sf_node *node,
                          const sf_reshards *reshards, const sf_costs *costs)
{
    static const sf_effort nothing;
    const sf_plan *plan = reshards->plan;
    sf_effort effort = sf_effort_of(efforts, node, plan->nodes[node->id], &plan->mesh);
    if (effort.product)
        return sf_costs_op(costs, &effort);
    return sf_costs_op(costs, &effort) - sf_costs_op(costs, &nothing);
}

/* What does not stand in memory has to be made first: the longest way counts. */
static double seconds_before(const sf_efforts *efforts, const sf_node *node, const double *seconds)
{
    double most = 0;
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = sf_maker(efforts->graph, node->operands[o]);
        sf_value place = efforts->place[node->operands[o]];
        if (maker && place != SF_NONE && !efforts->stored[place])
            most = fmax(most, seconds[maker->id]);
    }
    return most;
}

static size_t list_reruns(const sf_efforts *efforts, const sf_reshards *reshards,
                          const sf_costs *costs, sf_arena *arena, rerun *out)
{
    const sf_graph *graph = efforts->graph;
    double *seconds = SF_ARRAY(arena, graph->nnodes, double);
    size_t count = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (!efforts->spare->recomputed[node->id])
            continue;
        seconds[node->id] =
            own_seconds(efforts, node, reshards, costs) + seconds_before(efforts, node, seconds);
        out[count] = (rerun){seconds[node->id], kept_bytes(efforts, node, reshards)};
        count += out[count].bytes > 0;
    }
    return count;
}

/* Of the cheapest, as many as keep this share of what all keep. */
static double seconds_of_share(rerun *all, size_t count, double share)
{
    double bytes = 0, seconds = 0;
    for (size_t i = 0; i < count; i++)
        bytes += all[i].bytes;
    bytes *= share;
    if (count > 0)
        qsort(all, count, sizeof *all, by_seconds_a_byte);
    for (size_t i = 0; i < count && bytes > 0; i++) {
        double part = bytes < all[i].bytes ? bytes / all[i].bytes : 1;
        seconds += part * all[i].seconds;
        bytes -= all[i].bytes;
    }
    return seconds;
}

double sf_spare_seconds(const sf_efforts *efforts, const sf_reshards *reshards,
                        const uint32_t *moments, const sf_costs *costs, int64_t spared,
                        sf_arena *arena)
{
    sf_efforts keeping = *efforts;
    sf_price kept;
    keeping.last = efforts->spare->kept;
    sf_estimate_memory(&keeping, reshards, moments, arena, &kept);
    double too_much = (double)kept.memory - (double)efforts->spare->memory;
    double gain = (double)kept.memory - (double)spared;
    if (too_much <= 0 || gain <= 0)
        return 0;
    rerun *all = SF_ARRAY(arena, efforts->graph->top->nnodes + 1, rerun);
    size_t count = list_reruns(efforts, reshards, costs, arena, all);
    return seconds_of_share(all, count, too_much < gain ? too_much / gain : 1);
}
