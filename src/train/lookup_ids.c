#include "train/lookup_ids.h"

#include "ir/opdef.h"
#include "op/op.h"
#include "op/slots.h"

/* What passes ids on: in another shape, or with negative ids counted from the end. */
static bool passes_ids(const sf_node *node)
{
    static const sf_opcode ops[] = {SF_OP_RESHAPE,   SF_OP_BROADCAST_IN_DIM, SF_OP_CONVERT,
                                    SF_OP_TRANSPOSE, SF_OP_SELECT,           SF_OP_ADD,
                                    SF_OP_SLICE};
    bool passes = false;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        passes = passes || sf_is(node, ops[i]);
    return passes;
}

/* The argument whose ids the value has; SF_NONE: none, or several. Constants shift them. */
static uint32_t find_source(const sf_graph *graph, sf_value value)
{
    const sf_node *node;
    while ((node = sf_maker(graph, value))) {
        sf_value next = SF_NONE;
        if (!passes_ids(node))
            return SF_NONE;
        /* Of a select, both values come from the ids, of which the first may be shifted. */
        for (uint32_t o = 0; o < node->noperands && next == SF_NONE; o++) {
            const sf_node *maker = sf_maker(graph, node->operands[o]);
            bool is_number =
                maker &&
                (sf_is(maker, SF_OP_CONSTANT) ||
                 (sf_is(maker, SF_OP_BROADCAST_IN_DIM) && sf_maker(graph, maker->operands[0]) &&
                  sf_is(sf_maker(graph, maker->operands[0]), SF_OP_CONSTANT)));
            bool is_choice = sf_type_of(graph, node->operands[o])->dtype == SF_PRED;
            if (!is_number && !is_choice)
                next = node->operands[o];
        }
        if (next == SF_NONE)
            return SF_NONE;
        value = next;
    }
    return graph->values[value].index;
}

static bool find_wild(const sf_tensor *ids, int64_t rows, int64_t *out)
{
    for (int64_t i = 0; i < ids->type->count; i++) {
        *out = sf_load_i64(ids->type->dtype, ids->data, i);
        if (*out >= rows || *out < -rows)
            return true;
    }
    return false;
}

bool sf_find_lookup_id(const sf_graph *graph, const sf_tensor *arguments, sf_lookup_id *out)
{
    for (uint32_t n = 0; n < graph->top->nnodes; n++) {
        const sf_node *node = sf_top_node(graph, n);
        const sf_attr *map = sf_is(node, SF_OP_GATHER) ? node->attrs[SF_INDEXING_MAP] : NULL;
        if (!map || map->count != 1)
            continue;
        *out = (sf_lookup_id){.argument = find_source(graph, node->operands[1]),
                              .rows = sf_type_of(graph, node->operands[0])->dims[map->ints[0]]};
        const sf_tensor *ids = out->argument == SF_NONE ? NULL : &arguments[out->argument];
        if (ids && ids->data && !sf_is_float(ids->type->dtype) &&
            find_wild(ids, out->rows, &out->id))
            return true;
    }
    return false;
}
