/* Attributes of instructions. The op's schema determines the attributes and their kinds; attributes
 * with a syntax of their own in HLO have a reader of their own. */
#include "front/hlo/hlo_reader.h"

/* 3, true, or a list of one, which is how HLO writes the dimension of a concatenation. */
static sf_status read_int(sf_hlo_frame *frame, int64_t *out)
{
    sf_hlo_scan *scan = &frame->scan;
    int count;
    if (sf_hlo_peek(scan) == '{') {
        sf_loc loc = sf_hlo_here(scan);
        SF_TRY(sf_hlo_read_ints(frame, out, 1, &count));
        if (count == 0)
            return sf_fail(frame->reader->diag, SF_EINPUT, loc, "the list is empty");
        return SF_OK;
    }
    if (sf_hlo_accept_word(scan, "true")) {
        *out = 1;
        return SF_OK;
    }
    if (sf_hlo_accept_word(scan, "false")) {
        *out = 0;
        return SF_OK;
    }
    return sf_hlo_number(scan, out) ? SF_OK
                                    : sf_hlo_expected(scan, "a number", frame->reader->diag);
}

/* "text", {verbatim} or an enumerator. */
static sf_status read_text(sf_hlo_frame *frame, sf_str *out)
{
    sf_hlo_scan *scan = &frame->scan;
    char c = sf_hlo_peek(scan);
    if (c == '{') {
        *out = sf_hlo_balanced(scan);
        return SF_OK;
    }
    if (c != '"') {
        *out = sf_hlo_word(scan);
        return out->length ? SF_OK : sf_hlo_expected(scan, "a value", frame->reader->diag);
    }
    if (!sf_hlo_string(scan, out))
        return sf_hlo_expected(scan, "a string that ends on its line", frame->reader->diag);
    *out = sf_hlo_unescape(&frame->reader->arena, *out);
    return SF_OK;
}

static sf_status read_slot(sf_hlo_frame *frame, const sf_attrdef *def, const sf_attr **out)
{
    sf_pool *pool = frame->reader->module->graph->pool;
    enum { MOST = 4 * SF_MAX_RANK };
    int64_t numbers[MOST];
    int count;
    sf_str text;
    switch (def->kind) {
    case SF_ATTR_INT:
        SF_TRY(read_int(frame, &numbers[0]));
        *out = sf_attr_int(pool, numbers[0]);
        return SF_OK;
    case SF_ATTR_INTS:
        SF_TRY(sf_hlo_read_ints(frame, numbers, MOST, &count));
        *out = sf_attr_ints(pool, count, numbers);
        return SF_OK;
    case SF_ATTR_TEXT:
        SF_TRY(read_text(frame, &text));
        *out = sf_attr_text(pool, text);
        return SF_OK;
    case SF_ATTR_DENSE:
        break;
    }
    if (def->text == SF_AS_F32)
        return sf_hlo_read_literal(frame, sf_type_scalar(pool, SF_F32), out);
    return sf_hlo_expected(&frame->scan, "no such attribute", frame->reader->diag);
}

/* {op_name="a/b" source_file="f.py" source_line=3} */
static sf_status read_op_metadata(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_hlo_scan *scan = &frame->scan;
    sf_diag *diag = frame->reader->diag;
    SF_TRY(sf_hlo_expect(scan, '{', diag));
    while (!sf_hlo_accept(scan, '}')) {
        sf_str key = sf_hlo_word(scan), text;
        if (key.length == 0)
            return sf_hlo_expected(scan, "a key of the metadata", diag);
        SF_TRY(sf_hlo_expect(scan, '=', diag));
        char c = sf_hlo_peek(scan);
        if (c == '"' && !sf_hlo_string(scan, &text))
            return sf_hlo_expected(scan, "a string that ends on its line", diag);
        if (c == '{') {
            scan->at++;
            do
                sf_hlo_balanced(scan);
            while (sf_hlo_accept(scan, ','));
            SF_TRY(sf_hlo_expect(scan, '}', diag));
        } else if (c != '"' && sf_hlo_word(scan).length == 0) {
            return sf_hlo_expected(scan, "a value", diag);
        }
        if (c == '"' && sf_str_is(key, "op_name"))
            inst->path = text;
        sf_hlo_accept(scan, ',');
    }
    return SF_OK;
}

/* {highest,default}: absent where all operands have the default. */
static sf_status read_precision(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_hlo_scan *scan = &frame->scan;
    sf_diag *diag = frame->reader->diag;
    char text[64];
    size_t length = 0;
    bool is_default = true;
    SF_TRY(sf_hlo_expect(scan, '{', diag));
    do {
        sf_str word = sf_hlo_word(scan);
        if (word.length == 0 || length + word.length + 2 > sizeof text)
            return sf_hlo_expected(scan, "a precision", diag);
        is_default = is_default && sf_str_is(word, "default");
        if (length > 0)
            text[length++] = ',';
        for (size_t i = 0; i < word.length; i++) {
            char c = word.at[i];
            text[length++] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        }
    } while (sf_hlo_accept(scan, ','));
    SF_TRY(sf_hlo_expect(scan, '}', diag));
    if (!is_default)
        sf_hlo_set_attr(inst, "precision_config",
                        sf_attr_text(frame->reader->module->graph->pool, (sf_str){text, length}));
    return SF_OK;
}

/* rng_three_fry -> THREE_FRY. The algorithm of a dot says how exact a device has to be, and no device
 * may be less exact than we are. */
static sf_status read_algorithm(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_str word = sf_hlo_word(&frame->scan);
    if (word.length == 0)
        return sf_hlo_expected(&frame->scan, "an algorithm", frame->reader->diag);
    char text[32];
    size_t length = 0;
    for (size_t i = sf_str_starts(word, "rng_") ? 4 : 0; i < word.length && length < 32; i++) {
        char c = word.at[i];
        text[length++] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    sf_hlo_set_attr(inst, "rng_algorithm",
                    sf_attr_text(frame->reader->module->graph->pool, (sf_str){text, length}));
    return SF_OK;
}

static sf_status read_sharding(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    inst->sharding = sf_hlo_balanced(&frame->scan);
    return SF_OK;
}

/* Of a custom call: an enumerator here, a number in StableHLO. */
static sf_status read_api_version(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    static const char *const versions[] = {
        "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
        "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};
    sf_str word = sf_hlo_word(&frame->scan);
    for (int i = 0; i < 5; i++)
        if (sf_str_is(word, versions[i]))
            sf_hlo_set_attr(inst, "api_version",
                            sf_attr_int(frame->reader->module->graph->pool, i));
    return SF_OK;
}

/* Of topk; the smallest elements would be another op. */
static sf_status read_largest(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    if (sf_hlo_accept_word(&frame->scan, "true"))
        return SF_OK;
    return sf_fail(frame->reader->diag, SF_EUNSUPPORTED, inst->loc,
                   "topk of the smallest elements is not supported");
}

static sf_status read_index(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    return read_int(frame, &inst->index);
}

/* The computation of this name, read by now. */
static sf_status read_callee(sf_hlo_frame *frame, sf_hlo_instruction *inst,
                             sf_hlo_computation **out)
{
    sf_hlo_reader *reader = frame->reader;
    sf_loc loc = sf_hlo_here(&frame->scan);
    sf_str name = sf_hlo_name(&frame->scan);
    if (name.length == 0)
        return sf_hlo_expected(&frame->scan, "the name of a computation", reader->diag);
    sf_hlo_computation *callee = sf_hlo_find_computation(reader, name);
    switch (callee->state) {
    case SF_HLO_UNREAD:
        if (frame->depth == SF_MAX_DEPTH)
            return sf_fail(reader->diag, SF_EUNSUPPORTED, loc,
                           "more than %d computations use each other before they are defined",
                           SF_MAX_DEPTH);
        sf_hlo_read_computation(reader, callee, frame->depth + 1);
        break;
    case SF_HLO_READING:
        return sf_fail(reader->diag, SF_EINPUT, loc, "the computation %.*s uses itself",
                       SF_STR_ARGS(name));
    case SF_HLO_MISSING:
        callee->state = SF_HLO_BAD;
        return sf_fail(reader->diag, SF_EINPUT, loc, "there is no computation %.*s",
                       SF_STR_ARGS(name));
    case SF_HLO_GOOD:
    case SF_HLO_BAD:
        break;
    }
    inst->is_poisoned = inst->is_poisoned || callee->state == SF_HLO_BAD;
    *out = callee;
    return SF_OK;
}

static sf_status read_branches(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    SF_TRY(sf_hlo_expect(&frame->scan, '{', frame->reader->diag));
    size_t capacity = 0;
    inst->nbranches = 0;
    do {
        sf_hlo_computation *branch = NULL;
        SF_TRY(read_callee(frame, inst, &branch));
        SF_PUSH(&frame->reader->arena, inst->branches, inst->nbranches, capacity, branch);
    } while (sf_hlo_accept(&frame->scan, ','));
    return sf_hlo_expect(&frame->scan, '}', frame->reader->diag);
}

typedef sf_status read_fn(sf_hlo_frame *frame, sf_hlo_instruction *inst);

/* Keys are compared for every attribute of the text, so their lengths are known beforehand. */
#define KEY(text)                                                                                  \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }

static const struct own {
    sf_str key;
    read_fn *read;
} owns[] = {
    {KEY("metadata"), read_op_metadata},    {KEY("index"), read_index},
    {KEY("slice"), sf_hlo_read_slice},      {KEY("padding"), sf_hlo_read_padding},
    {KEY("window"), sf_hlo_read_window},    {KEY("dim_labels"), sf_hlo_read_dim_labels},
    {KEY("sharding"), read_sharding},       {KEY("operand_precision"), read_precision},
    {KEY("algorithm"), read_algorithm},     {KEY("branch_computations"), read_branches},
    {KEY("api_version"), read_api_version}, {KEY("largest"), read_largest},
};

static const struct callee {
    sf_str key;
    sf_hlo_callee at;
} callees[] = {
    {KEY("to_apply"), SF_HLO_TO_APPLY},     {KEY("calls"), SF_HLO_TO_APPLY},
    {KEY("condition"), SF_HLO_CONDITION},   {KEY("body"), SF_HLO_BODY},
    {KEY("select"), SF_HLO_SELECT},         {KEY("scatter"), SF_HLO_SCATTER},
    {KEY("true_computation"), SF_HLO_TRUE}, {KEY("false_computation"), SF_HLO_FALSE},
};

/* Attributes that do not change the computation. */
static const char *const harmless[] = {
    "async_execution_thread",
    "backend_config",
    "called_computations",
    "channel_id",
    "control-predecessors",
    "custom_call_schedule",
    "custom_call_schedule_hint",
    "execution_thread",
    "frontend_attributes",
    "indices_are_sorted",
    "is_host_transfer",
    "is_stable",
    "kind",
    "operand_layout_constraints",
    "origin",
    "original_value",
    "outer_dimension_partitions",
    "output_operand_aliasing",
    "output_to_operand_aliasing",
    "parameter_replication",
    "raw_backend_config",
    "replica_groups",
    "result_accuracy",
    "statistics",
    "unique_indices",
    "use_global_device_ids",
};

static int find_key_attr(const sf_opdef *def, sf_str key)
{
    for (int i = 0; def && i < def->nattrs; i++) {
        const sf_attrdef *attr = &def->attrs[i];
        if (!attr->derived && sf_str_is(key, attr->hlo ? attr->hlo : attr->name))
            return i;
    }
    return -1;
}

static sf_status unknown_attr(sf_hlo_frame *frame, sf_hlo_instruction *inst, sf_str key, sf_loc loc)
{
    /* A map is over all dimensions, whatever it says. */
    bool is_harmless = inst->op->kind == SF_HLO_MAP && sf_str_is(key, "dimensions");
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        is_harmless = is_harmless || sf_str_is(key, harmless[i]);
    if (is_harmless) {
        sf_hlo_balanced(&frame->scan);
        return SF_OK;
    }
    return sf_fail(frame->reader->diag, SF_EUNSUPPORTED, loc,
                   "the attribute %.*s of %.*s is not supported", SF_STR_ARGS(key),
                   SF_STR_ARGS(inst->op->name));
}

static sf_status read_attr(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    sf_hlo_scan *scan = &frame->scan;
    sf_loc loc = sf_hlo_here(scan);
    sf_str key = sf_hlo_word(scan);
    if (key.length == 0)
        return sf_hlo_expected(scan, "an attribute", frame->reader->diag);
    SF_TRY(sf_hlo_expect(scan, '=', frame->reader->diag));
    for (size_t i = 0; i < sizeof owns / sizeof *owns; i++)
        if (sf_str_equal(key, owns[i].key))
            return owns[i].read(frame, inst);
    for (size_t i = 0; i < sizeof callees / sizeof *callees; i++)
        if (sf_str_equal(key, callees[i].key))
            return read_callee(frame, inst, &inst->callees[callees[i].at]);
    int slot = find_key_attr(inst->op->def, key);
    if (slot >= 0)
        return read_slot(frame, &inst->op->def->attrs[slot], &inst->attrs[slot]);
    if (inst->op->kind == SF_HLO_GET_DIMENSION_SIZE && sf_str_is(key, "dimensions"))
        return read_index(frame, inst);
    return unknown_attr(frame, inst, key, loc);
}

/* Attributes whose default HLO omits and StableHLO does not. */
static const struct omitted {
    sf_opcode code;
    const char *name;
    int64_t value; /* of INT; a list is empty */
} omitted[] = {
    {SF_OP_CONVOLUTION, "feature_group_count", 1},
    {SF_OP_CONVOLUTION, "batch_group_count", 1},
    {SF_OP_DOT_GENERAL, "lhs_batching_dimensions", 0},
    {SF_OP_DOT_GENERAL, "rhs_batching_dimensions", 0},
    {SF_OP_DOT_GENERAL, "lhs_contracting_dimensions", 0},
    {SF_OP_DOT_GENERAL, "rhs_contracting_dimensions", 0},
    {SF_OP_REDUCE, "dimensions", 0},
    {SF_OP_TRIANGULAR_SOLVE, "left_side", 0},
    {SF_OP_TRIANGULAR_SOLVE, "lower", 0},
    {SF_OP_TRIANGULAR_SOLVE, "unit_diagonal", 0},
};

static void add_omitted(sf_pool *pool, sf_hlo_instruction *inst)
{
    const sf_opdef *def = inst->op->def;
    bool is_complete = true;
    for (int i = 0; i < def->nattrs; i++)
        is_complete = is_complete && (inst->attrs[i] || !def->attrs[i].required);
    for (size_t i = 0; !is_complete && i < sizeof omitted / sizeof *omitted; i++) {
        if (def->id != (int)omitted[i].code)
            continue;
        int slot = sf_attr_slot(def, sf_str_of(omitted[i].name));
        if (slot < 0 || inst->attrs[slot] || !def->attrs[slot].required)
            continue;
        bool is_int = def->attrs[slot].kind == SF_ATTR_INT;
        inst->attrs[slot] =
            is_int ? sf_attr_int(pool, omitted[i].value) : sf_attr_ints(pool, 0, NULL);
    }
}

sf_status sf_hlo_read_attrs(sf_hlo_frame *frame, sf_hlo_instruction *inst)
{
    SF_ASSERT(!inst->op->def || inst->op->def->nattrs <= SF_HLO_MAX_ATTRS);
    while (sf_hlo_accept(&frame->scan, ','))
        SF_TRY(read_attr(frame, inst));
    int slot = inst->sharding.length ? find_key_attr(inst->op->def, sf_str_of("sharding")) : -1;
    if (slot >= 0)
        inst->attrs[slot] = sf_attr_text(frame->reader->module->graph->pool, inst->sharding);
    if (inst->op->def)
        add_omitted(frame->reader->module->graph->pool, inst);
    return SF_OK;
}
