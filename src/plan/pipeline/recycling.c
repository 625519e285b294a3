#include "plan/pipeline/recycling.h"

#include <inttypes.h>
#include <string.h>

#include "op/flops.h"
#include "plan/pipeline/stage_builder.h"
#include "plan/pipeline/stage_flow.h"
#include "plan/pipeline/stage_label.h"

typedef struct readers {
    uint32_t *at; /* nodes, in order */
    size_t count, capacity;
} readers;

typedef struct finding {
    const sf_graph *graph;
    sf_arena *arena;
    sf_flow flow;
    const bool *moving; /* by node */
    readers *of;        /* by argument: forward nodes that multiply with it */
    /* by argument: forward nodes that depend on the micro-batch and read it, or a value made of
     * weights alone */
    readers *any;
} finding;

static void add_reader(finding *f, readers *out, uint32_t node)
{
    if (out->count == 0 || out->at[out->count - 1] != node)
        SF_PUSH(f->arena, out->at, out->count, out->capacity, node);
}

static void list_readers(finding *f, sf_value value, uint32_t argument)
{
    for (uint32_t u = f->flow.uses.first[value]; u < f->flow.uses.first[value + 1]; u++) {
        uint32_t id = f->flow.uses.at[u].node;
        const sf_node *node = id == SF_NONE ? NULL : f->graph->nodes[id];
        if (!node || node->phase != SF_FORWARD)
            continue;
        if (f->moving[id])
            add_reader(f, &f->any[argument], id);
        if (f->moving[id] && sf_is_dear(node))
            add_reader(f, &f->of[argument], id);
        for (uint32_t r = 0; r < node->nresults && !f->moving[id]; r++)
            list_readers(f, node->result + r, argument);
    }
}

static finding open_finding(const sf_graph *graph, sf_arena *arena)
{
    finding f = {.graph = graph,
                 .arena = arena,
                 .flow = sf_flow_of(graph, arena),
                 .moving = sf_find_moving(graph, arena),
                 .of = SF_ARRAY(arena, graph->top->narguments + 1, readers),
                 .any = SF_ARRAY(arena, graph->top->narguments + 1, readers)};
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].role == SF_ROLE_PARAM)
            list_readers(&f, graph->top->arguments[i], i);
    return f;
}

/* How often most weights are read, by their elements. */
static uint32_t count_rounds(const finding *f)
{
    enum { MOST = 64 };
    double weight[MOST + 1] = {0};
    uint32_t best = 1;
    for (uint32_t i = 0; i < f->graph->top->narguments; i++)
        if (f->of[i].count > 0 && f->of[i].count <= MOST)
            weight[f->of[i].count] +=
                (double)sf_type_of(f->graph, f->graph->top->arguments[i])->count;
    for (uint32_t n = 2; n <= MOST; n++)
        if (weight[n] > weight[best])
            best = n;
    return best;
}

/* Readers of a weight are in the round of their number among them; all other nodes in the last
 * round of their operands. */
static uint32_t *find_of_nodes(const finding *f, uint32_t rounds)
{
    const sf_block *top = f->graph->top;
    uint32_t *of = SF_ARRAY(f->arena, f->graph->nnodes, uint32_t);
    for (uint32_t i = 0; i < top->narguments; i++)
        for (uint32_t n = 0; n < f->of[i].count && f->of[i].count == rounds; n++)
            if (of[f->of[i].at[n]] < n)
                of[f->of[i].at[n]] = n;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(f->graph, i);
        for (uint32_t o = 0; o < node->noperands && node->phase == SF_FORWARD; o++) {
            const sf_node *maker = sf_maker(f->graph, f->flow.source[node->operands[o]]);
            if (maker && of[maker->id] > of[node->id])
                of[node->id] = of[maker->id];
        }
    }
    return of;
}

uint32_t sf_find_rounds(const sf_graph *graph, sf_arena *arena, uint32_t **of_node)
{
    finding f = open_finding(graph, arena);
    uint32_t rounds = count_rounds(&f);
    if (of_node)
        *of_node = find_of_nodes(&f, rounds);
    return rounds;
}

/* Cutting */

/* Times of rounds before the last count where the last one reads the same weights: each node goes
 * with the weight that it reads, or with its operands' weight. `times` is by node. */
static void carry_to_last(const finding *f, const bool *early, double *times)
{
    const sf_block *top = f->graph->top;
    uint32_t *home = SF_ARRAY(f->arena, f->graph->nnodes, uint32_t);
    memset(home, 0xff, f->graph->nnodes * sizeof *home);
    for (uint32_t i = 0; i < top->narguments; i++)
        for (size_t n = 0; n < f->any[i].count; n++)
            home[f->any[i].at[n]] = f->any[i].at[f->any[i].count - 1];
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(f->graph, i);
        uint32_t *at = &home[node->id];
        for (uint32_t o = 0; o < node->noperands && early[node->id] && *at == SF_NONE; o++) {
            const sf_node *maker = sf_maker(f->graph, f->flow.source[node->operands[o]]);
            *at = maker && early[maker->id] ? home[maker->id] : SF_NONE;
        }
        if (early[node->id] && *at != SF_NONE)
            times[*at] += times[node->id];
        times[node->id] = early[node->id] ? 0 : times[node->id];
    }
}

/* The last round by itself: weights are where it reads them. */
static sf_status cut_last(const finding *f, uint32_t rounds, const sf_stage_request *request,
                          const uint32_t *of, sf_diag *diag, uint32_t **stage)
{
    sf_stage_cut found;
    sf_stage_request last = *request;
    double *times = sf_arena_copy(f->arena, request->time, f->graph->nnodes * sizeof *times);
    bool *early = SF_ARRAY(f->arena, f->graph->nnodes, bool);
    for (uint32_t n = 0; n < f->graph->nnodes; n++)
        early[n] = f->graph->nodes[n]->phase == SF_FORWARD && of[n] + 1 < rounds;
    carry_to_last(f, early, times);
    last.time = times;
    last.beside = early;
    SF_TRY(sf_cut_step(f->graph, &last, f->arena, diag, &found));
    *stage = found.forward;
    return SF_OK;
}

/* The reader of a weight is where its last reader is; in the last round, all nodes are where they
 * were cut. Nodes that the last round does not have, such as those between rounds, are where a
 * round begins. */
static uint32_t *label_nodes(const finding *f, uint32_t rounds, const uint32_t *of,
                             const uint32_t *stage)
{
    uint32_t *labels = SF_ARRAY(f->arena, f->graph->nnodes, uint32_t);
    memset(labels, 0xff, f->graph->nnodes * sizeof *labels);
    for (uint32_t n = 0; n < f->graph->nnodes; n++)
        if (of[n] + 1 == rounds)
            labels[n] = stage[n];
    for (uint32_t i = 0; i < f->graph->top->narguments; i++) {
        const readers *all = &f->any[i];
        uint32_t last = all->count ? stage[all->at[all->count - 1]] : SF_NONE;
        last = last == SF_NONE ? 0 : last;
        for (size_t n = 0; n < all->count; n++)
            if (labels[all->at[n]] == SF_NONE)
                labels[all->at[n]] = last;
    }
    return labels;
}

/* The share of the backward pass's time that the rounds before the last take. */
static double early_share(const finding *f, const sf_stages *stages, uint32_t first_late,
                          const double *time)
{
    double early = 0, all = 0;
    for (uint32_t i = 0; i < f->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(f->graph, i);
        if (node->phase != SF_BACKWARD || stages->anywhere[node->id])
            continue;
        all += time[node->id];
        early += stages->of_node[node->id] < first_late ? time[node->id] : 0;
    }
    return all > 0 ? early / all : 0;
}

static sf_status check_alike(const sf_labelled *cut, uint32_t rounds, uint32_t groups,
                             sf_diag *diag)
{
    bool alike = cut->count == rounds * groups;
    for (uint32_t s = 0; s < cut->count && alike; s++)
        alike = cut->label[s] == s % groups;
    if (alike)
        return SF_OK;
    return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                   "the %" PRIu32 " forward passes of the step cannot be cut alike into %" PRIu32
                   " stages each: data goes back and forth between their parts",
                   rounds, groups);
}

sf_status sf_cut_rounds(const sf_graph *graph, uint32_t rounds, const sf_stage_request *request,
                        const double *time, sf_arena *arena, sf_diag *diag, uint32_t **forward)
{
    finding f = open_finding(graph, arena);
    uint32_t found = count_rounds(&f), groups = request->count, *stage;
    sf_stages stages;
    if (found != rounds) {
        sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                "the schedule is for %" PRIu32 " forward passes through the same layers; the step "
                "has %" PRIu32,
                rounds, found);
        return found == 1 ? sf_hint(diag, "1f1b is for one")
                          : sf_hint(diag, "take 3f1b:%" PRIu32, found);
    }
    const uint32_t *of = find_of_nodes(&f, rounds);
    SF_TRY(cut_last(&f, rounds, request, of, diag, &stage));
    sf_labelled cut = sf_cut_by_labels(graph, label_nodes(&f, rounds, of, stage), arena);
    SF_TRY(check_alike(&cut, rounds, groups, diag));
    SF_TRY(sf_stages_complete(graph, cut.count, cut.forward, arena, diag, &stages));
    if (early_share(&f, &stages, (rounds - 1) * groups, time) > 0.1)
        return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                       "gradients go through all of the %" PRIu32 " forward passes of the step, "
                       "not through the last alone",
                       rounds);
    *forward = cut.forward;
    return SF_OK;
}
