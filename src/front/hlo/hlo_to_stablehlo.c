/* Instructions to nodes. */
#include "front/hlo/hlo_reader.h"

static sf_status need_operands(sf_hlo_frame *frame, const sf_hlo_instruction *inst, uint32_t count)
{
    if (inst->noperands == count)
        return SF_OK;
    return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc, "%.*s takes %u operand%s, not %u",
                   SF_STR_ARGS(inst->op->name), count, count == 1 ? "" : "s", inst->noperands);
}

/* The declared shape against the one that follows from the operands. */
static sf_status check_shape(sf_hlo_frame *frame, const sf_hlo_instruction *inst,
                             const sf_hlo_shape *shape)
{
    char declared[SF_TYPE_TEXT], found[SF_TYPE_TEXT];
    if (sf_hlo_same_shape(&inst->shape, shape))
        return SF_OK;
    return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc,
                   "the result of %.*s is declared as %s, but is %s", SF_STR_ARGS(inst->op->name),
                   sf_hlo_shape_text(&inst->shape, declared), sf_hlo_shape_text(shape, found));
}

static sf_status convert_parameter(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_graph *graph = frame->reader->module->graph;
    sf_block *block = frame->computation->func->block;
    const sf_type **types = sf_hlo_declared(frame, inst);
    sf_value *leaves = SF_ARRAY(&frame->reader->arena, inst->shape.nleaves + 1, sf_value);
    for (uint32_t i = 0; i < inst->shape.nleaves; i++)
        leaves[i] = sf_block_argument(graph, block, types[i]);
    SF_TRY(sf_hlo_define_leaves(frame, inst, leaves));
    sf_hlo_parameter parameter = {
        .number = inst->parameter,
        .value = (uint32_t)frame->nvalues - 1,
        .name = inst->name,
        .path = inst->path,
        .sharding = inst->sharding,
        .loc = inst->loc,
    };
    SF_PUSH(&frame->reader->arena, frame->parameters, frame->nparameters, frame->parameter_capacity,
            parameter);
    return SF_OK;
}

static sf_status convert_tuple(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    bool is_same = !inst->shape.type && inst->shape.nparts == inst->noperands;
    for (uint32_t i = 0; is_same && i < inst->noperands; i++)
        is_same = sf_hlo_same_shape(&inst->shape.parts[i], &frame->values[inst->operands[i]].shape);
    if (!is_same)
        return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc,
                       "the operands of tuple are not what its type says");
    const sf_value *leaves;
    uint32_t count;
    SF_TRY(sf_hlo_flatten(frame, inst, 0, inst->noperands, &leaves, &count));
    frame->reader->budget += count; /* the text spells the type out */
    return sf_hlo_define_leaves(frame, inst, leaves);
}

static sf_status convert_get_tuple_element(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    SF_TRY(need_operands(frame, inst, 1));
    const sf_hlo_value *operand = &frame->values[inst->operands[0]];
    if (operand->shape.type)
        return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc, "%.*s is no tuple",
                       SF_STR_ARGS(operand->name));
    if (inst->index < 0 || inst->index >= operand->shape.nparts)
        return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc,
                       "index %lld of a tuple of %u elements", (long long)inst->index,
                       operand->shape.nparts);
    const sf_hlo_shape *part = &operand->shape.parts[inst->index];
    SF_TRY(check_shape(frame, inst, part));
    return sf_hlo_define_leaves(frame, inst, operand->leaves + part->first);
}

static sf_status convert_copy(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    SF_TRY(need_operands(frame, inst, 1));
    sf_hlo_value operand = frame->values[inst->operands[0]];
    SF_TRY(check_shape(frame, inst, &operand.shape));
    return sf_hlo_define_leaves(frame, inst, sf_hlo_leaves(&operand));
}

static sf_status convert_constant(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_node_spec spec = {
        .def = inst->op->def,
        .nresults = 1,
        .types = &inst->shape.type,
        .attrs = inst->attrs,
        .loc = inst->loc,
    };
    sf_node *node;
    SF_TRY(sf_hlo_build(frame, inst, frame->computation->func->block, &spec, &node));
    return sf_hlo_define(frame, inst, node->result);
}

static sf_status convert_get_dimension_size(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_pool *pool = frame->reader->module->graph->pool;
    SF_TRY(need_operands(frame, inst, 1));
    const sf_type *type = frame->values[inst->operands[0]].shape.type;
    if (!type || inst->index < 0 || inst->index >= type->rank)
        return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc,
                       "the operand has no dimension %lld", (long long)inst->index);
    if (inst->shape.type != sf_type_scalar(pool, SF_S32))
        return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc, "the result must be s32[]");
    int32_t size =
        (int32_t)(type->dims[inst->index] > INT32_MAX ? INT32_MAX : type->dims[inst->index]);
    sf_hlo_set_attr(inst, "value", sf_attr_dense(pool, inst->shape.type, true, &size));
    return convert_constant(frame, inst);
}

/* The blocks of the computations that the instruction names, which are its regions. */
static uint32_t regions_of(const sf_hlo_instruction *inst, sf_block **out)
{
    uint32_t count = 0;
    for (int i = 0; inst->op->def->nregions != 0 && i < SF_HLO_CALLEES; i++)
        if (inst->callees[i])
            out[count++] = inst->callees[i]->func->block;
    return count;
}

static sf_status convert_table(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    const sf_opdef *def = inst->op->def;
    sf_block *regions[SF_HLO_CALLEES];
    sf_node_spec spec = {
        .def = def,
        .nresults = inst->shape.nleaves,
        .types = inst->shape.type ? &inst->shape.type : sf_hlo_declared(frame, inst),
        .attrs = inst->attrs,
        .nregions = regions_of(inst, regions),
        .regions = regions,
        .loc = inst->loc,
    };
    if (def->nregions > 0 && spec.nregions != (uint32_t)def->nregions)
        return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc,
                       "%.*s names %u computations, not %d", SF_STR_ARGS(inst->op->name),
                       spec.nregions, def->nregions);
    enum { FEW = 8 };
    sf_value few[FEW];
    bool is_simple = inst->noperands <= FEW;
    for (uint32_t i = 0; is_simple && i < inst->noperands; i++) {
        const sf_hlo_value *operand = &frame->values[inst->operands[i]];
        is_simple = operand->shape.type != NULL;
        few[i] = operand->leaf;
    }
    spec.operands = few;
    spec.noperands = inst->noperands;
    if (!is_simple)
        SF_TRY(sf_hlo_flatten(frame, inst, 0, inst->noperands, &spec.operands, &spec.noperands));
    sf_node *node;
    SF_TRY(sf_hlo_build(frame, inst, frame->computation->func->block, &spec, &node));
    return sf_hlo_define(frame, inst, node->result);
}

/* One step of a bitcast: an op on one value. */
static sf_status bitcast_step(sf_hlo_frame *frame, const sf_hlo_instruction *inst, sf_opcode code,
                              const sf_attr *attr, const sf_type *type, sf_value *value)
{
    if (sf_type_of(frame->reader->module->graph, *value) == type && !attr)
        return SF_OK;
    sf_node_spec spec = {
        .def = sf_opdef_get(code),
        .noperands = 1,
        .operands = value,
        .nresults = 1,
        .types = &type,
        .attrs = attr ? &attr : NULL,
        .loc = inst->loc,
    };
    sf_node *node;
    SF_TRY(sf_hlo_build(frame, inst, frame->computation->func->block, &spec, &node));
    *value = node->result;
    return SF_OK;
}

/* The tensor with its dimensions in the order in which they lie in memory. */
static const sf_type *physical_type(sf_pool *pool, const sf_hlo_shape *shape, sf_dtype dtype)
{
    int64_t dims[SF_MAX_RANK];
    int rank = shape->type->rank;
    for (int i = 0; i < rank; i++)
        dims[i] = shape->type->dims[shape->order ? shape->order[i] : i];
    return sf_type_get(pool, dtype, rank, dims);
}

/* Leaves the memory as it is and reads it as another type or in another layout. Said with tensors:
 * transpose to the order of the memory, reshape, and transpose to the order of the result. */
static sf_status bitcast_memory(sf_hlo_frame *frame, const sf_hlo_instruction *inst,
                                const sf_hlo_shape *from, sf_value *value)
{
    sf_pool *pool = frame->reader->module->graph->pool;
    const sf_hlo_shape *to = &inst->shape;
    sf_dtype dtype = to->type->dtype;
    int64_t order[SF_MAX_RANK];
    SF_TRY(bitcast_step(frame, inst, SF_OP_BITCAST_CONVERT, NULL,
                        sf_type_with(pool, from->type, dtype), value));
    for (int i = 0; from->order && i < from->type->rank; i++)
        order[i] = from->order[i];
    if (from->order)
        SF_TRY(bitcast_step(frame, inst, SF_OP_TRANSPOSE,
                            sf_attr_ints(pool, from->type->rank, order),
                            physical_type(pool, from, dtype), value));
    SF_TRY(bitcast_step(frame, inst, SF_OP_RESHAPE, NULL, physical_type(pool, to, dtype), value));
    for (int i = 0; to->order && i < to->type->rank; i++)
        order[to->order[i]] = i;
    if (to->order)
        SF_TRY(bitcast_step(frame, inst, SF_OP_TRANSPOSE, sf_attr_ints(pool, to->type->rank, order),
                            to->type, value));
    return SF_OK;
}

static sf_status convert_bitcast(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    SF_TRY(need_operands(frame, inst, 1));
    const sf_hlo_shape from = frame->values[inst->operands[0]].shape;
    if (!from.type || !inst->shape.type)
        return convert_copy(frame, inst);
    const sf_dtype_info *have = sf_dtype_get(from.type->dtype);
    const sf_dtype_info *want = sf_dtype_get(inst->shape.type->dtype);
    if (have->bits != want->bits || from.type->count != inst->shape.type->count) {
        char text[SF_TYPE_TEXT];
        sf_fail(frame->reader->diag, SF_EUNSUPPORTED, inst->loc,
                "a bitcast from %s to elements of another number or width is not supported",
                sf_hlo_shape_text(&from, text));
        return sf_hint(frame->reader->diag, "dump the module before optimization");
    }
    sf_value value = frame->values[inst->operands[0]].leaf;
    SF_TRY(bitcast_memory(frame, inst, &from, &value));
    return sf_hlo_define_leaves(frame, inst, &value);
}

sf_status sf_hlo_convert(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    if (inst->is_poisoned)
        return SF_OK;
    switch (inst->op->kind) {
    case SF_HLO_TABLE:
        return convert_table(frame, inst);
    case SF_HLO_BITCAST:
        return convert_bitcast(frame, inst);
    case SF_HLO_CALL:
        return sf_hlo_convert_call(frame, inst);
    case SF_HLO_CONDITIONAL:
        return sf_hlo_convert_conditional(frame, inst);
    case SF_HLO_CONSTANT:
        return convert_constant(frame, inst);
    case SF_HLO_COPY:
        return convert_copy(frame, inst);
    case SF_HLO_GET_DIMENSION_SIZE:
        return convert_get_dimension_size(frame, inst);
    case SF_HLO_GET_TUPLE_ELEMENT:
        return convert_get_tuple_element(frame, inst);
    case SF_HLO_MAP:
        return sf_hlo_convert_map(frame, inst);
    case SF_HLO_PARAMETER:
        return convert_parameter(frame, inst);
    case SF_HLO_TUPLE:
        return convert_tuple(frame, inst);
    case SF_HLO_UNKNOWN:
        break;
    }
    return SF_EUNSUPPORTED;
}
