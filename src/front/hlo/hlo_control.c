/* Instructions that call computations: call, fusion, conditional and map. While and the ops with a
 * combining body need nothing special: their computations are their regions. */
#include "front/hlo/hlo_reader.h"
#include "op/util.h"

/* That a computation can be called with these operands and has the instruction's declared
 * result. */
static sf_status check_callee(sf_hlo_frame *frame, const sf_hlo_instruction *inst,
                              const sf_hlo_computation *callee, uint32_t first, uint32_t end)
{
    sf_diag *diag = frame->reader->diag;
    char here[SF_TYPE_TEXT], there[SF_TYPE_TEXT];
    if (end - first != callee->nparameters)
        return sf_fail(diag, SF_EINPUT, inst->loc, "%.*s has %u parameters, but %u operands",
                       SF_STR_ARGS(callee->name), callee->nparameters, end - first);
    for (uint32_t i = 0; i < callee->nparameters; i++) {
        const sf_hlo_shape *operand = &frame->values[inst->operands[first + i]].shape;
        if (!sf_hlo_same_shape(operand, &callee->parameters[i]))
            return sf_fail(diag, SF_EINPUT, inst->loc, "parameter %u of %.*s is %s, not %s", i,
                           SF_STR_ARGS(callee->name),
                           sf_hlo_shape_text(&callee->parameters[i], there),
                           sf_hlo_shape_text(operand, here));
    }
    if (!sf_hlo_same_shape(&inst->shape, &callee->root))
        return sf_fail(diag, SF_EINPUT, inst->loc, "%.*s gives %s, not %s",
                       SF_STR_ARGS(callee->name), sf_hlo_shape_text(&callee->root, there),
                       sf_hlo_shape_text(&inst->shape, here));
    return SF_OK;
}

static sf_status build_call(sf_hlo_frame *frame, const sf_hlo_instruction *inst,
                            const sf_hlo_computation *callee, uint32_t first, uint32_t end,
                            sf_block *block, sf_node **out)
{
    const sf_opdef *def = sf_opdef_get(SF_OP_CALL);
    const sf_attr *attrs[SF_HLO_MAX_ATTRS] = {NULL};
    SF_TRY(check_callee(frame, inst, callee, first, end));
    attrs[sf_attr_slot(def, sf_str_of("callee"))] =
        sf_attr_text(frame->reader->module->graph->pool, callee->name);
    sf_node_spec spec = {
        .def = def,
        .nresults = inst->shape.nleaves,
        .types = sf_hlo_declared(frame, inst),
        .attrs = attrs,
        .loc = inst->loc,
    };
    SF_TRY(sf_hlo_flatten(frame, inst, first, end, &spec.operands, &spec.noperands));
    return sf_hlo_build(frame, inst, block, &spec, out);
}

sf_status sf_hlo_convert_call(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    const sf_hlo_computation *callee = inst->callees[SF_HLO_TO_APPLY];
    if (!callee)
        return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc, "%.*s names no computation",
                       SF_STR_ARGS(inst->op->name));
    sf_node *node;
    SF_TRY(build_call(frame, inst, callee, 0, inst->noperands, frame->computation->func->block,
                      &node));
    return sf_hlo_define(frame, inst, node->result);
}

/* The number of the branch as s32: a predicate chooses 0 when it is false, 1 when it is true. */
static sf_status branch_index(sf_hlo_frame *frame, const sf_hlo_instruction *inst, sf_value *out)
{
    sf_graph *graph = frame->reader->module->graph;
    const sf_type *type = sf_type_of(graph, *out), *s32 = sf_type_scalar(graph->pool, SF_S32);
    if (type->rank != 0 || (type->dtype != SF_PRED && type->dtype != SF_S32))
        return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc,
                       "a conditional chooses by pred[] or s32[]");
    bool is_pair = inst->callees[SF_HLO_TRUE] != NULL;
    if (is_pair != (type->dtype == SF_PRED))
        return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc,
                       is_pair ? "true_computation needs a pred[] to choose by"
                               : "branch_computations need an s32[] to choose by");
    if (type == s32)
        return SF_OK;
    sf_node_spec spec = {
        .def = sf_opdef_get(SF_OP_CONVERT),
        .noperands = 1,
        .operands = out,
        .nresults = 1,
        .types = &s32,
        .loc = inst->loc,
    };
    const sf_attr *attrs[SF_HLO_MAX_ATTRS] = {NULL};
    spec.attrs = attrs;
    sf_node *node;
    SF_TRY(sf_hlo_build(frame, inst, frame->computation->func->block, &spec, &node));
    *out = node->result;
    return SF_OK;
}

/* A conditional passes each branch an operand of its own; a region of ours sees the values around it,
 * so it is a block that holds the call. */
static sf_status branch_block(sf_hlo_frame *frame, const sf_hlo_instruction *inst, uint32_t operand,
                              const sf_hlo_computation *callee, sf_block **out)
{
    sf_graph *graph = frame->reader->module->graph;
    sf_node *node;
    *out = sf_block_new(graph);
    SF_TRY(build_call(frame, inst, callee, operand, operand + 1, *out, &node));
    sf_value *results = SF_ARRAY(&frame->reader->arena, node->nresults + 1, sf_value);
    for (uint32_t i = 0; i < node->nresults; i++)
        results[i] = node->result + i;
    sf_block_return(graph, *out, node->nresults, results);
    return SF_OK;
}

sf_status sf_hlo_convert_conditional(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_diag *diag = frame->reader->diag;
    sf_hlo_computation *pair[] = {inst->callees[SF_HLO_FALSE], inst->callees[SF_HLO_TRUE]};
    sf_hlo_computation **branches = pair[0] && pair[1] ? pair : inst->branches;
    size_t nbranches = pair[0] && pair[1] ? 2 : inst->nbranches;
    if (nbranches == 0 || inst->noperands != nbranches + 1)
        return sf_fail(diag, SF_EINPUT, inst->loc,
                       "a conditional of %zu branches and %u operands: it has one to choose by and "
                       "one for each branch",
                       nbranches, inst->noperands);
    const sf_hlo_value *chooser = &frame->values[inst->operands[0]];
    sf_value index = chooser->leaf;
    if (!chooser->shape.type)
        return sf_fail(diag, SF_EINPUT, inst->loc, "a conditional chooses by pred[] or s32[]");
    SF_TRY(branch_index(frame, inst, &index));
    sf_block **blocks = SF_ARRAY(&frame->reader->arena, nbranches, sf_block *);
    /* The operands of a pair are those for true, then for false; its regions are the other way. */
    for (uint32_t i = 0; i < nbranches; i++)
        SF_TRY(
            branch_block(frame, inst, branches == pair ? 2 - i : 1 + i, branches[i], &blocks[i]));
    sf_node_spec spec = {
        .def = inst->op->def,
        .noperands = 1,
        .operands = &index,
        .nresults = inst->shape.nleaves,
        .types = sf_hlo_declared(frame, inst),
        .attrs = inst->attrs,
        .nregions = (uint32_t)nbranches,
        .regions = blocks,
        .loc = inst->loc,
    };
    sf_node *node;
    SF_TRY(sf_hlo_build(frame, inst, frame->computation->func->block, &spec, &node));
    return sf_hlo_define(frame, inst, node->result);
}

/* The one element-wise op of a map's body, or NULL. */
static const sf_node *only_node(const sf_graph *graph, const sf_block *block)
{
    if (block->nnodes != 1 || block->nresults != 1)
        return NULL;
    const sf_node *node = graph->nodes[block->nodes[0]];
    if (node->nresults != 1 || node->result != block->results[0] || node->nregions != 0)
        return NULL;
    if (node->def->factors != sf_factors_pointwise)
        return NULL;
    return node;
}

/* A map whose body is one element-wise op is that op on tensors. */
sf_status sf_hlo_convert_map(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    const sf_graph *graph = frame->reader->module->graph;
    const sf_hlo_computation *callee = inst->callees[SF_HLO_TO_APPLY];
    const sf_block *body = callee ? callee->func->block : NULL;
    const sf_node *inner = body ? only_node(graph, body) : NULL;
    enum { MOST = 4 };
    if (!inner || inner->noperands > MOST || body->narguments != inst->noperands ||
        !inst->shape.type)
        return sf_fail(frame->reader->diag, SF_EUNSUPPORTED, inst->loc,
                       "map is supported only where its computation is one element-wise op");
    sf_value operands[MOST];
    for (uint32_t i = 0; i < inner->noperands; i++) {
        const sf_value_info *info = &graph->values[inner->operands[i]];
        const sf_hlo_value *operand = &frame->values[inst->operands[info->index]];
        operands[i] = operand->leaf;
        if (!operand->shape.type || operand->shape.type->dtype != info->type->dtype)
            return sf_fail(frame->reader->diag, SF_EINPUT, inst->loc,
                           "operand %u of map is not what its computation takes", info->index);
    }
    sf_node_spec spec = {
        .def = inner->def,
        .noperands = inner->noperands,
        .operands = operands,
        .nresults = 1,
        .types = &inst->shape.type,
        .attrs = inner->attrs,
        .loc = inst->loc,
    };
    sf_node *node;
    SF_TRY(sf_hlo_build(frame, inst, frame->computation->func->block, &spec, &node));
    return sf_hlo_define(frame, inst, node->result);
}
