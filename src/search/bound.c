/* What no plan can do better. */
#include "search/search.h"

/* Every tensor is charged at most an n-th of its bytes less than whole, and every loop is cut into n
 * parts at most: so no layouts give an instruction less to do than an n-th of what it is when replicated. */
static sf_effort least_effort(const sf_efforts *efforts, uint32_t inst, const sf_layout *replicated,
                              int devices)
{
    static const sf_mesh one = {.naxes = 1, .axes = {{"all", 1}}};
    sf_effort joint = {0};
    for (uint32_t k = efforts->first_of[inst]; k < efforts->first_of[inst + 1]; k++) {
        const sf_node *node = efforts->graph->nodes[efforts->nodes_of[k]];
        sf_effort effort = sf_effort_of(efforts, node, replicated, &one);
        sf_effort_join(&joint, &effort);
    }
    joint.flops /= devices;
    joint.bytes /= devices;
    return joint;
}

double sf_search_bound(const sf_efforts *efforts, const sf_costs *costs, int devices)
{
    const sf_graph *graph = efforts->graph;
    sf_arena arena = {0};
    uint32_t most = 1;
    for (size_t i = 0; i < graph->nnodes; i++) {
        uint32_t tensors = graph->nodes[i]->noperands + graph->nodes[i]->nresults;
        most = tensors > most ? tensors : most;
    }
    sf_layout *replicated = SF_ARRAY(&arena, most, sf_layout);
    double seconds = 0;
    for (uint32_t i = 0; i < efforts->ninsts; i++) {
        sf_effort least = least_effort(efforts, i, replicated, devices);
        seconds += least.flops > 0 || least.bytes > 0 ? sf_costs_op_shared(costs, &least) : 0;
    }
    sf_arena_free(&arena);
    return seconds;
}
