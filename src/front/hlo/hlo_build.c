/* Nodes and values of an instruction: its operands, and its results. */
#include "front/hlo/hlo_reader.h"
#include "op/node_builder.h"

/* Instructions without nodes of their own (tuples, copies) have no path either. */
static void set_path(sf_hlo_reader *reader, uint32_t node, const char *path)
{
    if (node >= reader->path_capacity) {
        size_t capacity = reader->path_capacity ? reader->path_capacity * 2 : 256;
        while (node >= capacity)
            capacity *= 2;
        const char **larger = SF_ARRAY(&reader->arena, capacity, const char *);
        if (reader->path_capacity)
            memcpy(larger, reader->paths, reader->path_capacity * sizeof *larger);
        reader->paths = larger;
        reader->path_capacity = capacity;
    }
    reader->paths[node] = path;
}

sf_status sf_hlo_build(sf_hlo_frame *frame, const sf_hlo_instruction *inst, sf_block *block,
                       const sf_node_spec *spec, sf_node **out)
{
    sf_hlo_reader *reader = frame->reader;
    sf_graph *graph = reader->module->graph;
    SF_TRY(sf_build(graph, block, spec, reader->diag, out));
    if (inst->path.length > 0)
        set_path(reader, (*out)->id,
                 sf_pool_name(graph->pool, sf_hlo_unescape(&reader->arena, inst->path)));
    return SF_OK;
}

sf_status sf_hlo_define_leaves(sf_hlo_frame *frame, sf_hlo_instruction *inst,
                               const sf_value *leaves)
{
    sf_hlo_value value = {.name = inst->name, .shape = inst->shape, .leaf = SF_NONE};
    if (inst->shape.type)
        value.leaf = leaves[0];
    else
        value.leaves = leaves;
    uint32_t number;
    if (!sf_hlo_add_value(frame, &value, &number))
        return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc, "%.*s is defined twice",
                       SF_STR_ARGS(inst->name));
    if (inst->is_root)
        frame->root = number;
    return SF_OK;
}

sf_status sf_hlo_define(sf_hlo_frame *frame, sf_hlo_instruction *inst, sf_value result)
{
    if (inst->shape.type)
        return sf_hlo_define_leaves(frame, inst, &result);
    sf_value *leaves = SF_ARRAY(&frame->reader->arena, inst->shape.nleaves + 1, sf_value);
    for (uint32_t i = 0; i < inst->shape.nleaves; i++)
        leaves[i] = result + i;
    return sf_hlo_define_leaves(frame, inst, leaves);
}

const sf_type **sf_hlo_declared(sf_hlo_frame *frame, const sf_hlo_instruction *inst)
{
    const sf_type **types =
        SF_ARRAY(&frame->reader->arena, inst->shape.nleaves + 1, const sf_type *);
    sf_hlo_leaf_types(&inst->shape, types);
    return types;
}

sf_status sf_hlo_flatten(sf_hlo_frame *frame, const sf_hlo_instruction *inst, uint32_t first,
                         uint32_t end, const sf_value **out, uint32_t *count)
{
    sf_hlo_reader *reader = frame->reader;
    size_t total = 0, tuples = 0;
    for (uint32_t i = first; i < end; i++) {
        const sf_hlo_shape *shape = &frame->values[inst->operands[i]].shape;
        total += shape->nleaves;
        tuples += shape->type ? 0 : shape->nleaves;
    }
    /* A few characters can pass a large tuple, so the sum of all of them has a bound. */
    if (tuples > reader->budget)
        return sf_fail(reader->diag, SF_EUNSUPPORTED, inst->loc,
                       "the tuples of this module have too many elements");
    reader->budget -= tuples;
    sf_value *values = SF_ARRAY(&reader->arena, total + 1, sf_value);
    size_t at = 0;
    for (uint32_t i = first; i < end; i++) {
        const sf_hlo_value *value = &frame->values[inst->operands[i]];
        memcpy(values + at, sf_hlo_leaves(value), value->shape.nleaves * sizeof *values);
        at += value->shape.nleaves;
    }
    *out = values;
    *count = (uint32_t)total;
    return SF_OK;
}
