#include "plan/pipeline/stage_costs.h"

#include "ir/uses.h"
#include "op/flops.h"

enum { OPS_PER_BYTE = 4 };

double *sf_times_by_ops(const sf_graph *graph, sf_arena *arena)
{
    double *times = SF_ARRAY(arena, graph->nnodes, double);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        times[node->id] = sf_node_flops(graph, node);
        for (uint32_t r = 0; r < node->nresults; r++)
            times[node->id] +=
                OPS_PER_BYTE * (double)sf_type_bytes(sf_type_of(graph, node->result + r));
    }
    return times;
}

typedef struct costing {
    const sf_graph *graph;
    const sf_stages *stages;
    const sf_pipe *pipe;
    sf_uses uses;
    bool *leads; /* by node of the backward pass: another stage goes on from it */
} costing;

/* From the last node to the first. */
static void find_leading(costing *c)
{
    for (uint32_t i = c->graph->top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(c->graph, i);
        for (uint32_t r = 0; r < node->nresults && node->phase == SF_BACKWARD; r++) {
            sf_value v = node->result + r;
            for (uint32_t u = c->uses.first[v]; u < c->uses.first[v + 1]; u++) {
                uint32_t reader = c->uses.at[u].node;
                if (reader != SF_NONE && c->graph->nodes[reader]->phase == SF_BACKWARD)
                    c->leads[node->id] |= c->leads[reader] || c->stages->of_node[reader] !=
                                                                  c->stages->of_node[node->id];
            }
        }
    }
}

static sf_pass pass_of(const costing *c, const sf_node *node)
{
    if (node->phase == SF_FORWARD)
        return SF_PASS_FORWARD;
    return c->pipe->splits_weights && !c->leads[node->id] ? SF_PASS_WEIGHTS : SF_PASS_BACKWARD;
}

/* Whether the backward pass reads it. */
static bool is_kept(const sf_graph *graph, const sf_uses *uses, sf_value value)
{
    for (uint32_t u = uses->first[value]; u < uses->first[value + 1]; u++) {
        uint32_t reader = uses->at[u].node;
        if (reader != SF_NONE && graph->nodes[reader]->phase == SF_BACKWARD)
            return true;
    }
    return false;
}

int64_t *sf_kept_of_stages(const sf_graph *graph, const sf_stages *stages, uint32_t nmicrobatches,
                           const bool *recomputed, sf_arena *arena)
{
    int64_t *kept = SF_ARRAY(arena, stages->count, int64_t);
    sf_uses uses = sf_uses_of(graph, arena);
    const bool *moving = sf_find_moving(graph, arena);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        bool counts = node->phase == SF_FORWARD && moving[node->id] &&
                      !stages->anywhere[node->id] && !(recomputed && recomputed[node->id]);
        for (uint32_t r = 0; r < node->nresults && counts; r++)
            if (is_kept(graph, &uses, node->result + r))
                kept[stages->of_node[node->id]] +=
                    sf_type_bytes(sf_type_of(graph, node->result + r)) / nmicrobatches;
    }
    return kept;
}

/* Parts in a million of the time of a micro-batch, so that sums of many micro-batches stay
 * small. */
static int64_t *scale_times(const double *times, size_t count, sf_arena *arena)
{
    int64_t *out = SF_ARRAY(arena, count, int64_t);
    double all = 0;
    for (size_t i = 0; i < count; i++)
        all += times[i];
    for (size_t i = 0; i < count; i++)
        out[i] = all > 0 ? (int64_t)(times[i] / all * 1e6) : 1;
    return out;
}

sf_pipe_costs sf_costs_of_stages(const sf_graph *graph, const sf_stages *stages,
                                 const sf_pipe *pipe, const double *time, sf_arena *arena)
{
    costing c = {graph, stages, pipe, sf_uses_of(graph, arena),
                 SF_ARRAY(arena, graph->nnodes, bool)};
    size_t count = (size_t)pipe->nstages * SF_PASSES;
    double *times = SF_ARRAY(arena, count, double);
    const int64_t *held = sf_kept_of_stages(graph, stages, pipe->nmicrobatches, NULL, arena);
    find_leading(&c);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        uint32_t stage = stages->of_node[node->id];
        if (node->phase == SF_UPDATE || stages->anywhere[node->id])
            continue;
        times[stage * SF_PASSES + pass_of(&c, node)] += time[node->id];
    }
    return (sf_pipe_costs){.time = scale_times(times, count, arena), .held = held, .late = held};
}
