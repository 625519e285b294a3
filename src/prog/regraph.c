#include "prog/regraph.h"

#include "ir/clone.h"

void sf_regraph_begin(const sf_graph *graph, size_t more, sf_regraph *out)
{
    const sf_block *top = graph->top;
    sf_pool *pool = sf_pool_derive(graph->pool);
    out->graph = sf_graph_new(pool);
    sf_pool_release(pool);
    out->values = SF_ARRAY(&out->arena, graph->nvalues, sf_value);
    out->nodes = SF_ARRAY(&out->arena, graph->nnodes, uint32_t);
    out->node_of = SF_ARRAY(&out->arena, graph->nnodes + more, uint32_t);
    for (size_t i = 0; i < graph->nvalues; i++)
        out->values[i] = SF_NONE;
    for (size_t i = 0; i < graph->nnodes; i++)
        out->nodes[i] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++)
        out->values[top->arguments[i]] =
            sf_block_argument(out->graph, out->graph->top, sf_type_of(graph, top->arguments[i]));
}

void sf_regraph_end(const sf_graph *graph, sf_regraph *out)
{
    const sf_block *top = graph->top;
    sf_value *results = SF_ARRAY(&out->arena, top->nresults + 1, sf_value);
    for (uint32_t i = 0; i < top->nresults; i++)
        results[i] = out->values[top->results[i]];
    sf_block_return(out->graph, out->graph->top, top->nresults, results);
    sf_graph_clone_head(graph, out->graph);
    for (uint32_t i = 0; graph->arguments && i < top->narguments; i++) {
        sf_value gradient = graph->arguments[i].gradient;
        out->graph->arguments[i].gradient = gradient != SF_NONE ? out->values[gradient] : SF_NONE;
    }
}

sf_value sf_regraph_add(sf_regraph *out, const sf_node *like, sf_opcode code, uint32_t noperands,
                        const sf_value *operands, const sf_attr *const *attrs, const sf_type *type)
{
    sf_node_spec spec = {.def = sf_opdef_get(code),
                         .noperands = noperands,
                         .nresults = 1,
                         .operands = operands,
                         .types = &type,
                         .attrs = attrs,
                         .scope = like->scope,
                         .phase = like->phase,
                         .loc = like->loc};
    return sf_graph_add(out->graph, out->graph->top, &spec)->result;
}

void sf_regraph_free(sf_regraph *regraph)
{
    sf_graph_free(regraph->graph);
    sf_arena_free(&regraph->arena);
}
