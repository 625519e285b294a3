#include "op/flops.h"

#include "base/mem.h"
#include "op/slots.h"

bool sf_is_control(const sf_node *node)
{
    return sf_is(node, SF_OP_WHILE) || sf_is(node, SF_OP_CASE);
}

bool sf_is_dear(const sf_node *node)
{
    switch (node->def->id) {
    case SF_OP_DOT_GENERAL:
    case SF_OP_CONVOLUTION:
    case SF_OP_SORT:
    case SF_OP_FFT:
    case SF_OP_CHOLESKY:
    case SF_OP_TRIANGULAR_SOLVE:
    case SF_OP_CUSTOM_CALL:
        return true;
    default:
        return sf_is_control(node);
    }
}

int64_t sf_certain_trips(const sf_node *loop)
{
    const sf_attr *trips = loop->attrs[SF_WHILE_TRIPS];
    return trips ? trips->integer : -1;
}

double sf_trips_of(const sf_node *loop)
{
    const sf_attr *said = loop->attrs[SF_WHILE_SAID];
    int64_t trips = sf_certain_trips(loop);
    return (double)(trips < 0 && said ? said->integer : trips);
}

double sf_region_runs(const sf_node *node, uint32_t region)
{
    double trips = sf_is(node, SF_OP_WHILE) ? sf_trips_of(node) : -1;
    return trips < 0 ? 1 : region == 0 ? trips + 1 : trips;
}

/* `types` has room for the operands and results of any node. */
static double count_flops(const sf_graph *graph, const sf_node *node, const sf_type **types)
{
    double flops = 0;
    if (!sf_is_control(node)) {
        sf_op op = sf_op_of(graph, node, types);
        return sf_op_flops(&op);
    }
    for (uint32_t r = 0; r < node->nregions; r++) {
        double once = 0;
        for (uint32_t i = 0; i < node->regions[r]->nnodes; i++)
            once += count_flops(graph, graph->nodes[node->regions[r]->nodes[i]], types);
        flops += once * sf_region_runs(node, r);
    }
    return flops;
}

static size_t count_tensors(const sf_graph *graph, const sf_node *node)
{
    size_t most = (size_t)node->noperands + node->nresults;
    for (uint32_t r = 0; r < node->nregions; r++)
        for (uint32_t i = 0; i < node->regions[r]->nnodes; i++) {
            size_t count = count_tensors(graph, graph->nodes[node->regions[r]->nodes[i]]);
            most = count > most ? count : most;
        }
    return most;
}

double sf_node_flops(const sf_graph *graph, const sf_node *node)
{
    enum { FEW = 16 };
    const sf_type *few[FEW], **types = few;
    size_t count = count_tensors(graph, node);
    if (count > FEW)
        types = sf_alloc(count * sizeof *types);
    double flops = count_flops(graph, node, types);
    if (count > FEW)
        sf_free(types);
    return flops;
}

double sf_step_flops(const sf_graph *graph)
{
    double flops = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        flops += sf_node_flops(graph, sf_top_node(graph, i));
    return flops;
}

/* The first such loop of the block, or NULL. */
static const sf_node *find_uncounted(const sf_graph *graph, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]], *found = NULL;
        if (sf_is(node, SF_OP_WHILE) && sf_trips_of(node) < 0)
            return node;
        for (uint32_t r = 0; r < node->nregions && !found; r++)
            found = find_uncounted(graph, node->regions[r]);
        if (found)
            return found;
    }
    return NULL;
}

void sf_warn_unknown_trips(const sf_graph *graph, sf_diag *diag)
{
    const sf_node *loop = find_uncounted(graph, graph->top);
    if (!loop)
        return;
    sf_warn(diag, loop->loc,
            "the trip count of this loop is not known, so one iteration is counted");
    sf_hint(diag, "--assume-trip-count says how often");
}
