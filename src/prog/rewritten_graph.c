#include "prog/rewritten_graph.h"

#include "ir/clone.h"
#include "ir/opdef.h"

void sf_regraph_begin(const sf_graph *graph, size_t more, sf_regraph *out)
{
    const sf_block *top = graph->top;
    sf_pool *pool = sf_pool_derive(graph->pool);
    out->graph = sf_graph_new(pool);
    out->at = out->graph->top;
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

typedef struct copying {
    const sf_graph *graph;
    sf_regraph_form *form;
    void *context;
    sf_regraph *out;
} copying;

static void copy_nodes(const copying *c, const sf_block *from, sf_block *to);

static sf_block *copy_region(const copying *c, const sf_block *from)
{
    sf_graph *graph = c->out->graph;
    sf_block *to = sf_block_new(graph);
    for (uint32_t i = 0; i < from->narguments; i++)
        c->out->values[from->arguments[i]] =
            sf_block_argument(graph, to, sf_type_of(c->graph, from->arguments[i]));
    copy_nodes(c, from, to);
    sf_value *results = SF_ARRAY(&c->out->arena, from->nresults + 1, sf_value);
    for (uint32_t i = 0; i < from->nresults; i++)
        results[i] = c->out->values[from->results[i]];
    sf_block_return(graph, to, from->nresults, results);
    return to;
}

static void copy_node(const copying *c, const sf_node *node, sf_block *to)
{
    sf_regraph *out = c->out;
    if (node->def->control == SF_CONTROL_NONE) {
        sf_node_clone(c->graph, node, out->graph, to, out->values);
        return;
    }
    sf_block **regions = SF_ARRAY(&out->arena, node->nregions, sf_block *);
    for (uint32_t r = 0; r < node->nregions; r++)
        regions[r] = copy_region(c, node->regions[r]);
    sf_node_clone_around(c->graph, node, regions, out->graph, to, out->values);
}

/* Nodes of regions come before the node that has them, and are recorded by then. */
static void copy_nodes(const copying *c, const sf_block *from, sf_block *to)
{
    sf_regraph *out = c->out;
    for (uint32_t i = 0; i < from->nnodes; i++) {
        const sf_node *node = c->graph->nodes[from->nodes[i]];
        uint32_t made = (uint32_t)out->graph->nnodes;
        out->at = to;
        if (!c->form(c->context, node, to)) {
            copy_node(c, node, to);
            made = (uint32_t)out->graph->nnodes - 1;
        }
        if (made < out->graph->nnodes && out->nodes[node->id] == SF_NONE)
            out->nodes[node->id] = (uint32_t)out->graph->nnodes - 1;
        while (made < out->graph->nnodes)
            out->node_of[made++] = node->id;
    }
}

void sf_regraph_copy(const sf_graph *graph, sf_regraph_form *form, void *context, sf_regraph *out)
{
    copying c = {graph, form, context, out};
    copy_nodes(&c, graph->top, out->graph->top);
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
    return sf_graph_add(out->graph, out->at, &spec)->result;
}

void sf_regraph_free(sf_regraph *regraph)
{
    sf_graph_free(regraph->graph);
    sf_arena_free(&regraph->arena);
}
