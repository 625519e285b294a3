/* What no plan can do better. */
#include "search/search.h"

/* Every tensor is charged at most an n-th of its bytes less than whole, and every loop is cut into n
 * parts at most: so no layouts give a kernel less to do than an n-th of what it is when replicated. */
static void add_effort(const sf_efforts *efforts, const sf_node *node, const sf_layout *replicated,
                       const sf_mesh *mesh, sf_effort *kernel)
{
    sf_effort effort = sf_effort_of(efforts, node, replicated, mesh);
    if (effort.product) {
        kernel->product = true;
        kernel->math = effort.math;
    }
    kernel->flops += effort.flops;
    kernel->bytes += effort.bytes;
}

double sf_search_bound(const sf_efforts *efforts, const sf_costs *costs, int devices)
{
    const sf_graph *graph = efforts->graph;
    const sf_block *top = graph->top;
    sf_mesh one = {.naxes = 1, .axes = {{"all", 1}}};
    sf_arena arena = {0};
    sf_effort *kernels = SF_ARRAY(&arena, graph->nnodes, sf_effort);
    uint32_t most = 1;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        uint32_t tensors = node->noperands + node->nresults;
        most = tensors > most ? tensors : most;
    }
    sf_layout *replicated = SF_ARRAY(&arena, most, sf_layout);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        add_effort(efforts, node, replicated, &one, &kernels[efforts->nodes[node->id].kernel]);
    }
    double seconds = 0;
    for (size_t i = 0; i < graph->nnodes; i++) {
        sf_effort *kernel = &kernels[i];
        if (kernel->flops <= 0 && kernel->bytes <= 0)
            continue;
        kernel->flops /= devices;
        kernel->bytes /= devices;
        seconds += sf_costs_op(costs, kernel);
    }
    sf_arena_free(&arena);
    return seconds;
}
