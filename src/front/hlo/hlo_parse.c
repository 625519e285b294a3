/* Computations and their instructions. */
#include "front/hlo/hlo_reader.h"
#include "op/slots.h"

#include <stdlib.h>

#include "ir/name.h"

static bool opcode_equal(const void *item, const void *key)
{
    return sf_str_equal(((const sf_hlo_opcode *)item)->name, *(const sf_str *)key);
}

static const struct special {
    const char *name;
    sf_hlo_kind kind;
    sf_opcode code; /* SF_OP_COUNT: no node, or none of one certain op */
} specials[] = {
    {"bitcast", SF_HLO_BITCAST, SF_OP_RESHAPE},
    {"call", SF_HLO_CALL, SF_OP_CALL},
    {"conditional", SF_HLO_CONDITIONAL, SF_OP_CASE},
    {"constant", SF_HLO_CONSTANT, SF_OP_CONSTANT},
    {"copy", SF_HLO_COPY, SF_OP_COUNT},
    {"fusion", SF_HLO_CALL, SF_OP_CALL},
    {"get-dimension-size", SF_HLO_GET_DIMENSION_SIZE, SF_OP_CONSTANT},
    {"get-tuple-element", SF_HLO_GET_TUPLE_ELEMENT, SF_OP_COUNT},
    {"map", SF_HLO_MAP, SF_OP_COUNT},
    {"parameter", SF_HLO_PARAMETER, SF_OP_COUNT},
    {"tuple", SF_HLO_TUPLE, SF_OP_COUNT},
};

/* The table entry of an opcode; each one is looked up once in a text. */
static const sf_hlo_opcode *find_opcode(sf_hlo_reader *reader, sf_str name)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < name.length; i++)
        hash = hash * 31 + (unsigned char)name.at[i];
    sf_intern_slot *slot =
        sf_intern_find(&reader->opcodes, &reader->arena, hash, opcode_equal, &name);
    if (slot->item)
        return slot->item;
    sf_hlo_opcode *opcode = SF_NEW(&reader->arena, sf_hlo_opcode);
    opcode->name = name;
    opcode->def = sf_opdef_find_hlo(name);
    opcode->kind = opcode->def ? SF_HLO_TABLE : SF_HLO_UNKNOWN;
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        if (!sf_str_is(name, specials[i].name))
            continue;
        opcode->kind = specials[i].kind;
        opcode->def = specials[i].code == SF_OP_COUNT ? NULL : sf_opdef_get(specials[i].code);
    }
    slot->item = opcode;
    return opcode;
}

static bool starts_with_one_of(sf_str name, const char *const *list)
{
    for (; *list; list++)
        if (sf_str_starts(name, *list))
            return true;
    return false;
}

static sf_status unknown_opcode(sf_hlo_reader *reader, sf_str name, sf_loc loc)
{
    static const char *const compiled[] = {"async",          "copy-",  "after-all",
                                           "add-dependency", "domain", NULL};
    char word[64];
    size_t length = name.length < sizeof word ? name.length : sizeof word - 1;
    for (size_t i = 0; i < length; i++)
        word[i] = name.at[i] == '-' ? '_' : name.at[i];
    SF_TRY(sf_hlo_end(reader, sf_refuse_op(name, loc, reader->diag)));
    sf_fail(reader->diag, SF_EUNSUPPORTED, loc, "the opcode %.*s is not supported",
            SF_STR_ARGS(name));
    const sf_opdef *near = sf_opdef_nearest((sf_str){word, length});
    if (starts_with_one_of(name, compiled))
        sf_hint(reader->diag, "dump the module before optimization");
    else if (near && near->hlo)
        sf_hint(reader->diag, "did you mean %s?", near->hlo);
    else
        sf_hint(reader->diag, "docs/reference/ops.md lists the ops that are read");
    return SF_EUNSUPPORTED;
}

/* [type] [%]name */
static sf_status read_operand(sf_hlo_frame *frame, sf_hlo_instruction *inst, uint32_t *out)
{
    sf_hlo_scan *scan = &frame->scan;
    sf_diag *diag = frame->reader->diag;
    sf_hlo_shape shape = {0};
    bool has_shape = sf_hlo_peek(scan) == '(';
    if (!has_shape && *scan->at != '%') {
        sf_hlo_scan ahead = *scan;
        sf_hlo_word(&ahead);
        has_shape = *ahead.at == '[';
    }
    if (has_shape)
        SF_TRY(sf_hlo_read_shape(frame->reader, scan, &shape));
    sf_loc loc = sf_hlo_here(scan);
    sf_str name = sf_hlo_name(scan);
    if (name.length == 0)
        return sf_hlo_expected(scan, "an operand", diag);
    *out = sf_hlo_find_value(frame, name);
    if (*out == SF_NONE)
        return sf_fail(diag, SF_EINPUT, loc, "%.*s is not defined before this", SF_STR_ARGS(name));
    const sf_hlo_value *value = &frame->values[*out];
    inst->is_poisoned = inst->is_poisoned || value->is_poisoned;
    if (has_shape && !value->is_poisoned && !sf_hlo_same_shape(&shape, &value->shape)) {
        char here[SF_TYPE_TEXT], there[SF_TYPE_TEXT];
        return sf_fail(diag, SF_EINPUT, loc, "%.*s is %s, not %s", SF_STR_ARGS(name),
                       sf_hlo_shape_text(&value->shape, there), sf_hlo_shape_text(&shape, here));
    }
    return SF_OK;
}

static sf_status read_operands(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    size_t count = 0;
    if (sf_hlo_accept(&frame->scan, ')'))
        return SF_OK;
    do {
        uint32_t operand = SF_NONE;
        SF_TRY(read_operand(frame, inst, &operand));
        SF_PUSH(&frame->reader->arena, frame->operands, count, frame->operand_capacity, operand);
    } while (sf_hlo_accept(&frame->scan, ','));
    inst->operands = frame->operands;
    inst->noperands = (uint32_t)count;
    return sf_hlo_expect(&frame->scan, ')', frame->reader->diag);
}

/* The content of the parentheses. */
static sf_status read_inner(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_hlo_scan *scan = &frame->scan;
    sf_diag *diag = frame->reader->diag;
    if (inst->op->kind == SF_HLO_PARAMETER) {
        if (!sf_hlo_number(scan, &inst->parameter) || inst->parameter < 0)
            return sf_hlo_expected(scan, "the number of the parameter", diag);
        return sf_hlo_expect(scan, ')', diag);
    }
    if (inst->op->kind != SF_HLO_CONSTANT)
        return read_operands(frame, inst);
    if (!inst->shape.type)
        return sf_fail(diag, SF_EUNSUPPORTED, inst->loc,
                       "a constant that is a tuple is not "
                       "supported");
    const sf_attr *literal;
    SF_TRY(sf_hlo_read_literal(frame, inst->shape.type, &literal));
    sf_hlo_set_attr(inst, "value", literal);
    return sf_hlo_expect(scan, ')', diag);
}

static sf_status refuse_call(sf_hlo_reader *reader, const sf_hlo_instruction *inst)
{
    const sf_opdef *def = inst->op->def;
    const sf_attr *target =
        def && def->id == SF_OP_CUSTOM_CALL ? inst->attrs[SF_CUSTOM_TARGET] : NULL;
    if (!target)
        return SF_OK;
    return sf_hlo_end(reader, sf_refuse_target(sf_str_of(target->text), inst->loc, reader->diag));
}

/* [ROOT] name = shape opcode(operands), attributes */
static sf_status read_instruction(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_hlo_scan *scan = &frame->scan;
    sf_diag *diag = frame->reader->diag;
    inst->is_root = sf_hlo_accept_word(scan, "ROOT");
    inst->loc = sf_hlo_here(scan);
    sf_str name = sf_hlo_name(scan);
    if (name.length == 0)
        return sf_hlo_expected(scan, "an instruction or '}'", diag);
    SF_TRY(sf_hlo_expect(scan, '=', diag));
    inst->name = name;
    SF_TRY(sf_hlo_read_shape(frame->reader, scan, &inst->shape));
    sf_loc loc = sf_hlo_here(scan);
    sf_str opcode = sf_hlo_word(scan);
    if (opcode.length == 0)
        return sf_hlo_expected(scan, "an opcode", diag);
    SF_TRY(sf_hlo_expect(scan, '(', diag));
    inst->op = find_opcode(frame->reader, opcode);
    if (inst->op->kind == SF_HLO_UNKNOWN)
        return unknown_opcode(frame->reader, opcode, loc);
    SF_TRY(read_inner(frame, inst));
    SF_TRY(sf_hlo_read_attrs(frame, inst));
    inst->is_read = true;
    SF_TRY(refuse_call(frame->reader, inst));
    return sf_hlo_convert(frame, inst);
}

/* True where an instruction begins or the computation ends. Reads one line only, since it is called
 * for many in a row. */
static bool is_start(const sf_hlo_scan *scan)
{
    if (*scan->at == '}')
        return scan->at == scan->line_start || scan->at + 1 == scan->end;
    sf_hlo_scan ahead = *scan;
    if (sf_hlo_accept_word(&ahead, "ROOT"))
        return true;
    if (sf_hlo_name(&ahead).length == 0)
        return false;
    while (*ahead.at == ' ')
        ahead.at++;
    return *ahead.at == '=';
}

/* To the next line with an instruction or the end of the computation; the lines of a long literal
 * are skipped. */
static void skip_instruction(sf_hlo_scan *scan)
{
    do {
        sf_hlo_next_line(scan);
        sf_hlo_space(scan);
    } while (scan->at < scan->end && !is_start(scan));
}

/* The value of an instruction that failed or that uses one. */
static void poison_instruction(sf_hlo_frame *frame, const sf_hlo_instruction *inst)
{
    if (inst->name.length == 0)
        return;
    uint32_t number;
    sf_hlo_value value = {.name = inst->name, .shape = inst->shape, .is_poisoned = true};
    sf_hlo_add_value(frame, &value, &number);
    if (inst->is_root)
        frame->root = number;
}

static void read_instructions(sf_hlo_frame *frame)
{
    sf_hlo_reader *reader = frame->reader;
    while (reader->errors < SF_HLO_MAX_ERRORS && !sf_hlo_accept(&frame->scan, '}')) {
        sf_hlo_instruction inst = {.index = -1};
        sf_status status = SF_OK;
        if (frame->scan.at >= frame->scan.end)
            status = sf_hlo_expected(&frame->scan, "'}'", reader->diag);
        else
            status = read_instruction(frame, &inst);
        if (status == SF_OK && !inst.is_poisoned)
            continue;
        frame->is_bad = true;
        poison_instruction(frame, &inst);
        sf_hlo_count_error(reader, status);
        if (frame->scan.at >= frame->scan.end)
            return;
        if (status != SF_OK && !inst.is_read)
            skip_instruction(&frame->scan);
    }
}

/* The user's name of an argument: JAX puts it in op_name, unless the parameter is that of an inner
 * function, where op_name is a path of calls. */
static sf_str parameter_name(sf_arena *arena, const sf_hlo_parameter *parameter)
{
    bool is_path =
        sf_str_starts(parameter->path, "jit(") || sf_str_starts(parameter->path, "pjit(");
    if (parameter->path.length > 0 && !is_path)
        return sf_hlo_unescape(arena, parameter->path);
    return sf_name_without_number(parameter->name);
}

/* Names the leaves of a parameter: name, or name[0], name[1][2] inside a tuple. There a long name is
 * cut, because every leaf has a copy. */
static void name_leaves(sf_hlo_reader *reader, const sf_hlo_shape *shape, sf_str name,
                        const char *sharding, sf_argument *out)
{
    if (shape->type) {
        out->name = sf_pool_name(reader->module->graph->pool, name);
        out->sharding = sharding;
        out->next = SF_NONE;
    }
    for (uint32_t i = 0; i < shape->nparts; i++) {
        char part[128];
        int kept = name.length < 100 ? (int)name.length : 100;
        int length = snprintf(part, sizeof part, "%.*s[%u]", kept, name.at, i);
        name_leaves(reader, &shape->parts[i], (sf_str){part, (size_t)length}, sharding,
                    out + shape->parts[i].first);
    }
}

/* Sorts the parameters by number. `order` gets the parameter of each number. */
static sf_status order_parameters(sf_hlo_frame *frame, const sf_hlo_parameter **order)
{
    sf_diag *diag = frame->reader->diag;
    for (size_t i = 0; i < frame->nparameters; i++) {
        const sf_hlo_parameter *parameter = &frame->parameters[i];
        if ((uint64_t)parameter->number >= frame->nparameters)
            return sf_fail(diag, SF_EINPUT, parameter->loc,
                           "parameter %lld, but the computation has only %zu parameters",
                           (long long)parameter->number, frame->nparameters);
        if (order[parameter->number])
            return sf_fail(diag, SF_EINPUT, parameter->loc, "parameter %lld is there twice",
                           (long long)parameter->number);
        order[parameter->number] = parameter;
    }
    return SF_OK;
}

static sf_status finish_parameters(sf_hlo_frame *frame)
{
    sf_hlo_reader *reader = frame->reader;
    sf_hlo_computation *computation = frame->computation;
    sf_graph *graph = reader->module->graph;
    sf_block *block = computation->func->block;
    const sf_hlo_parameter **order =
        SF_ARRAY(&reader->arena, frame->nparameters + 1, const sf_hlo_parameter *);
    SF_TRY(order_parameters(frame, order));
    sf_hlo_shape *shapes = SF_ARRAY(&reader->arena, frame->nparameters + 1, sf_hlo_shape);
    sf_argument *arguments = SF_ARRAY(&graph->arena, block->narguments + 1, sf_argument);
    uint32_t first = 0;
    for (size_t i = 0; i < frame->nparameters; i++) {
        const sf_hlo_parameter *parameter = order[i];
        const sf_hlo_value *value = &frame->values[parameter->value];
        shapes[i] = value->shape;
        shapes[i].first = first;
        const char *sharding =
            parameter->sharding.length ? sf_pool_string(graph->pool, parameter->sharding) : NULL;
        name_leaves(reader, &value->shape, parameter_name(&reader->arena, parameter), sharding,
                    arguments + first);
        for (uint32_t k = 0; k < value->shape.nleaves; k++, first++) {
            block->arguments[first] = sf_hlo_leaves(value)[k];
            graph->values[block->arguments[first]].index = first;
        }
    }
    computation->parameters = shapes;
    computation->nparameters = (uint32_t)frame->nparameters;
    computation->func->arguments = arguments;
    return SF_OK;
}

static sf_status finish_computation(sf_hlo_frame *frame)
{
    sf_hlo_computation *computation = frame->computation;
    sf_graph *graph = frame->reader->module->graph;
    if (frame->nvalues == 0)
        return sf_fail(frame->reader->diag, SF_EINPUT, computation->loc,
                       "the computation %.*s has no instructions", SF_STR_ARGS(computation->name));
    SF_TRY(finish_parameters(frame));
    const sf_hlo_value *root =
        &frame->values[frame->root == SF_NONE ? frame->nvalues - 1 : frame->root];
    computation->root = root->shape;
    sf_func *func = computation->func;
    sf_block_return(graph, func->block, root->shape.nleaves, sf_hlo_leaves(root));
    func->results = SF_ARRAY(&graph->arena, root->shape.nleaves + 1, sf_result);
    return SF_OK;
}

void sf_hlo_read_computation(sf_hlo_reader *reader, sf_hlo_computation *computation, int depth)
{
    sf_hlo_frame frame = {
        .reader = reader,
        .computation = computation,
        .scan = computation->body,
        .depth = depth,
        .root = SF_NONE,
    };
    computation->state = SF_HLO_READING;
    computation->func = sf_module_add(reader->module, computation->name, computation->loc);
    read_instructions(&frame);
    if (!frame.is_bad) {
        sf_status status = finish_computation(&frame);
        sf_hlo_count_error(reader, status);
        frame.is_bad = status != SF_OK;
    }
    computation->state = frame.is_bad ? SF_HLO_BAD : SF_HLO_GOOD;
}
