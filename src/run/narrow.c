#include "run/narrow.h"

#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "ir/opdef.h"
#include "op/op.h"
#include "op/slots.h"

typedef struct narrowing {
    const sf_graph *from;
    sf_graph *to;
    sf_value *map; /* from values of the one to those of the other */
    sf_arena scratch;
} narrowing;

static bool is_narrowed(const narrowing *n, const sf_node *node)
{
    bool is_dot = sf_is(node, SF_OP_DOT_GENERAL);
    if (!is_dot && !sf_is(node, SF_OP_CONVOLUTION))
        return false;
    const sf_attr *precision = node->attrs[is_dot ? SF_DOT_PRECISION : SF_CONV_PRECISION];
    bool is_exact = precision && precision->text && strstr(precision->text, "HIGH");
    return !is_exact && sf_type_of(n->from, node->operands[0])->dtype == SF_F32 &&
           sf_type_of(n->from, node->operands[1])->dtype == SF_F32 &&
           sf_type_of(n->from, node->result)->dtype == SF_F32;
}

/* `value` of the copy in another type, as part of the node that asks for it. */
static sf_value converted(const narrowing *n, const sf_node *node, sf_block *block, sf_value value,
                          sf_dtype dtype)
{
    const sf_type *type = sf_type_with(n->to->pool, sf_type_of(n->to, value), dtype);
    const sf_opdef *def = sf_opdef_get(SF_OP_CONVERT);
    sf_node_spec spec = sf_spec_like(node);
    spec.def = def;
    spec.noperands = spec.nresults = 1;
    spec.nregions = 0;
    spec.operands = &value;
    spec.types = &type;
    spec.attrs = NULL;
    spec.again = node->again;
    return sf_graph_add(n->to, block, &spec)->result;
}

/* No library sums a convolution of bf16 into f32: its result is rounded, too. */
static void narrow_product(narrowing *n, const sf_node *node, sf_block *block)
{
    sf_value operands[2];
    const sf_type *type = sf_type_of(n->from, node->result);
    bool is_dot = sf_is(node, SF_OP_DOT_GENERAL);
    for (int i = 0; i < 2; i++)
        operands[i] = converted(n, node, block, n->map[node->operands[i]], SF_BF16);
    if (!is_dot)
        type = sf_type_with(n->to->pool, type, SF_BF16);
    sf_node_spec spec = sf_spec_like(node);
    spec.operands = operands;
    spec.types = &type;
    spec.attrs = node->attrs;
    spec.again = node->again;
    sf_value result = sf_graph_add(n->to, block, &spec)->result;
    n->map[node->result] = is_dot ? result : converted(n, node, block, result, SF_F32);
}

static void narrow_block(narrowing *n, const sf_block *block, sf_block *copy);

/* A loop or a branch, whose products are in its regions. */
static void narrow_regions(narrowing *n, const sf_node *node, sf_block *block)
{
    sf_block **regions = SF_ARRAY(&n->scratch, node->nregions, sf_block *);
    const sf_type **types = SF_ARRAY(&n->scratch, node->nresults, const sf_type *);
    sf_value *operands = SF_ARRAY(&n->scratch, node->noperands, sf_value);
    for (uint32_t i = 0; i < node->nregions; i++) {
        regions[i] = sf_block_new(n->to);
        narrow_block(n, node->regions[i], regions[i]);
    }
    for (uint32_t i = 0; i < node->nresults; i++)
        types[i] = sf_type_of(n->from, node->result + i);
    for (uint32_t i = 0; i < node->noperands; i++)
        operands[i] = n->map[node->operands[i]];
    sf_node_spec spec = sf_spec_like(node);
    spec.operands = operands;
    spec.types = types;
    spec.attrs = node->attrs;
    spec.regions = regions;
    spec.again = node->again;
    sf_value result = sf_graph_add(n->to, block, &spec)->result;
    for (uint32_t i = 0; i < node->nresults; i++)
        n->map[node->result + i] = result + i;
}

static void narrow_block(narrowing *n, const sf_block *block, sf_block *copy)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        n->map[block->arguments[i]] =
            sf_block_argument(n->to, copy, sf_type_of(n->from, block->arguments[i]));
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = n->from->nodes[block->nodes[i]];
        if (is_narrowed(n, node))
            narrow_product(n, node, copy);
        else if (node->def->control != SF_CONTROL_NONE)
            narrow_regions(n, node, copy);
        else
            sf_node_clone(n->from, node, n->to, copy, n->map);
    }
    sf_value *results = SF_ARRAY(&n->scratch, block->nresults, sf_value);
    for (uint32_t i = 0; i < block->nresults; i++)
        results[i] = n->map[block->results[i]];
    sf_block_return(n->to, copy, block->nresults, results);
}

sf_graph *sf_narrow_products(const sf_graph *graph)
{
    narrowing n = {.from = graph, .to = sf_graph_new(graph->pool)};
    n.map = SF_ARRAY(&n.scratch, graph->nvalues, sf_value);
    narrow_block(&n, graph->top, n.to->top);
    sf_graph_clone_head(graph, n.to);
    for (uint32_t i = 0; graph->arguments && i < graph->top->narguments; i++)
        if (graph->arguments[i].gradient != SF_NONE)
            n.to->arguments[i].gradient = n.map[graph->arguments[i].gradient];
    sf_arena_free(&n.scratch);
    return n.to;
}
