#include "api/probe/probe_attention.h"

#include <math.h>
#include <string.h>

#include "op/attention.h"

static const sf_attr *scale_of(sf_pool *pool, int64_t depth)
{
    float scale = 1 / sqrtf((float)depth);
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    return sf_attr_int(pool, bits);
}

static void add_attention(sf_graph *graph, const sf_attend_size *size, bool gradient)
{
    const int64_t places[4] = {size->batch, size->places, size->heads, size->depth};
    const int64_t rows[3] = {size->batch, size->heads, size->places};
    const sf_type *q = sf_type_get(graph->pool, size->dtype, 4, places);
    const sf_type *ends = sf_type_get(graph->pool, SF_F32, 3, rows);
    const sf_type *const in[] = {q, q, q, q, ends, q}, *const forward[] = {q, ends};
    const sf_attr *attrs[SF_ATTENTION_SLOTS] = {[SF_ATTENTION_CAUSAL] = sf_attr_int(graph->pool, 1),
                                                [SF_ATTENTION_SCALE] =
                                                    scale_of(graph->pool, size->depth)};
    sf_value operands[6];
    uint32_t count = gradient ? 6 : 3;
    for (uint32_t i = 0; i < count; i++)
        operands[i] = sf_block_argument(graph, graph->top, in[i]);
    sf_node_spec spec = {.def = gradient ? &sf_op_attention_gradient : &sf_op_attention,
                         .noperands = count,
                         .nresults = gradient ? 3 : 2,
                         .operands = operands,
                         .types = gradient ? in : forward,
                         .attrs = attrs,
                         .loc = SF_NOWHERE};
    const sf_node *node = sf_graph_add(graph, graph->top, &spec);
    for (uint32_t i = 0; i < spec.nresults; i++)
        graph->top->results[graph->top->nresults++] = node->result + i;
}

sf_graph *sf_attend_step(const sf_attend_size *size, bool gradient, int copies)
{
    enum { MOST_RESULTS = 3 };
    sf_pool *pool = sf_pool_new();
    sf_graph *graph = sf_graph_new(pool);
    sf_pool_release(pool);
    graph->top->results = SF_ARRAY(&graph->arena, MOST_RESULTS * copies, sf_value);
    for (int i = 0; i < copies; i++)
        add_attention(graph, size, gradient);
    graph->arguments = SF_ARRAY(&graph->arena, graph->top->narguments, sf_argument);
    graph->results = SF_ARRAY(&graph->arena, graph->top->nresults, sf_result);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        graph->arguments[i] = (sf_argument){.name = "", .next = SF_NONE, .gradient = SF_NONE};
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        graph->results[i] = (sf_result){.name = ""};
    return graph;
}
