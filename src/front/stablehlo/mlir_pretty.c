/* The pretty forms: how StableHLO writes an op when it does not write it generically. */
#include <string.h>

#include "front/stablehlo/mlir_reader.h"
#include "op/op.h"

/* A slot that the form fills by itself; a definition with the form has it. */
static int slot_named(const sf_mlir_op *op, const char *name)
{
    int slot = sf_attr_slot(op->def, sf_str_of(name));
    SF_ASSERT(slot >= 0);
    return slot;
}

static sf_status parse_dictionary(sf_mlir *r, sf_mlir_op *op)
{
    return sf_scan_is(&r->scan, '{') ? sf_mlir_dictionary(r, op->def, op->attrs) : SF_OK;
}

static sf_status take_word(sf_mlir *r, const char *word)
{
    if (sf_scan_word(&r->scan, word))
        return SF_OK;
    char what[32];
    snprintf(what, sizeof what, "'%s'", word);
    return sf_mlir_expected(r, what);
}

/* Operands with commas between them, up to the closing bracket. */
static sf_status parse_operands(sf_mlir *r, sf_mlir_op *op, char close)
{
    if (!sf_scan_is(&r->scan, close)) {
        do {
            SF_TRY(sf_mlir_operand(r, op));
        } while (sf_scan_take(&r->scan, ','));
    }
    return sf_mlir_take(r, close);
}

/* `format = e11m52` */
static sf_status parse_format(sf_mlir *r, sf_mlir_op *op)
{
    const char *at = (sf_scan_skip(&r->scan), r->scan.at);
    int64_t exponent, mantissa;
    r->scan.at += *at == 'e';
    bool good = *at == 'e' && sf_scan_int(&r->scan, &exponent) && *r->scan.at == 'm';
    r->scan.at += good;
    if (!good || !sf_scan_int(&r->scan, &mantissa)) {
        r->scan.at = at;
        return sf_mlir_expected(r, "a format such as e8m7");
    }
    op->attrs[slot_named(op, "exponent_bits")] = sf_attr_int(r->pool, exponent);
    op->attrs[slot_named(op, "mantissa_bits")] = sf_attr_int(r->pool, mantissa);
    return SF_OK;
}

/* `key = value` */
static sf_status parse_pair(sf_mlir *r, sf_mlir_op *op)
{
    sf_loc loc = sf_mlir_here(r);
    sf_str key = sf_scan_name(&r->scan);
    if (!key.length)
        return sf_mlir_expected(r, "an operand or an attribute");
    int slot = sf_mlir_slot(op->def, key);
    bool format = sf_str_is(key, "format") && op->def->id == SF_OP_REDUCE_PRECISION;
    if (slot < 0 && !format) {
        SF_MLIR_FAIL(r, SF_EINPUT, loc, "%s.%s has no attribute '%.*s'", op->def->dialect,
                     op->def->name, SF_STR_ARGS(key));
        for (int i = 0; i < op->def->nattrs; i++)
            if (op->def->attrs[i].key)
                return sf_hint(r->diag, "did you mean %s?", op->def->attrs[i].key);
        return SF_EINPUT;
    }
    SF_TRY(sf_mlir_take(r, '='));
    return format ? parse_format(r, op)
                  : sf_mlir_attr(r, &op->def->attrs[slot], false, &op->attrs[slot]);
}

/* Operands, then pairs; the list ends where no comma follows. */
static sf_status parse_mixed(sf_mlir *r, sf_mlir_op *op)
{
    do {
        SF_TRY(sf_scan_is(&r->scan, '%') ? sf_mlir_operand(r, op) : parse_pair(r, op));
    } while (sf_scan_take(&r->scan, ','));
    return SF_OK;
}

static sf_status parse_operands_form(sf_mlir *r, sf_mlir_op *op)
{
    if (sf_scan_take(&r->scan, '('))
        SF_TRY(parse_operands(r, op, ')'));
    else if (!sf_scan_is(&r->scan, ':') && !sf_scan_is(&r->scan, '{'))
        SF_TRY(parse_mixed(r, op));
    SF_TRY(parse_dictionary(r, op));
    /* `optimization_barrier ()` has nothing to give types to. */
    if (op->def->nresults < 0 && r->noperands == op->operands && !sf_scan_is(&r->scan, ':'))
        return SF_OK;
    return sf_mlir_op_types(r, op);
}

static sf_status parse_paren_form(sf_mlir *r, sf_mlir_op *op)
{
    SF_TRY(sf_mlir_take(r, '('));
    if (!sf_scan_is(&r->scan, ')'))
        SF_TRY(parse_mixed(r, op));
    SF_TRY(sf_mlir_take(r, ')'));
    SF_TRY(parse_dictionary(r, op));
    return sf_mlir_op_types(r, op);
}

static sf_status parse_constant_form(sf_mlir *r, sf_mlir_op *op)
{
    int slot = slot_named(op, "value");
    SF_TRY(parse_dictionary(r, op));
    SF_TRY(sf_mlir_attr(r, &op->def->attrs[slot], true, &op->attrs[slot]));
    SF_PUSH(&r->arena, r->types, r->ntypes, r->type_capacity, op->attrs[slot]->dense.type);
    return SF_OK;
}

static sf_status parse_compare_form(sf_mlir *r, sf_mlir_op *op)
{
    int slot = slot_named(op, "comparison_direction");
    SF_TRY(sf_mlir_attr(r, &op->def->attrs[slot], false, &op->attrs[slot]));
    SF_TRY(sf_mlir_take(r, ','));
    SF_TRY(sf_mlir_operand(r, op));
    SF_TRY(sf_mlir_take(r, ','));
    SF_TRY(sf_mlir_operand(r, op));
    slot = slot_named(op, "compare_type");
    if (sf_scan_take(&r->scan, ','))
        SF_TRY(sf_mlir_attr(r, &op->def->attrs[slot], false, &op->attrs[slot]));
    SF_TRY(parse_dictionary(r, op));
    return sf_mlir_op_types(r, op);
}

/* `[0, 1] x [2, 3]`, into the slots of the two operands. */
static sf_status parse_dim_pairs(sf_mlir *r, sf_mlir_op *op, const char *lhs, const char *rhs)
{
    int slot = slot_named(op, lhs);
    SF_TRY(sf_mlir_attr(r, &op->def->attrs[slot], false, &op->attrs[slot]));
    SF_TRY(take_word(r, "x"));
    slot = slot_named(op, rhs);
    return sf_mlir_attr(r, &op->def->attrs[slot], false, &op->attrs[slot]);
}

/* `<lhs_precision_type = tf32, ...>` is kept as its generic form. */
static sf_status parse_algorithm(sf_mlir *r, sf_mlir_op *op)
{
    const char *first = (sf_scan_skip(&r->scan), r->scan.at);
    if (*first != '<' || !sf_scan_balanced(&r->scan))
        return sf_mlir_expected(r, "an algorithm in <>");
    sf_buf text = {0};
    sf_buf_puts(&text, "#stablehlo.dot_algorithm");
    sf_buf_add(&text, first, (size_t)(r->scan.at - first));
    op->attrs[slot_named(op, "algorithm")] =
        sf_attr_text(r->pool, (sf_str){text.text, text.length});
    sf_buf_free(&text);
    return SF_OK;
}

static sf_status parse_dot_form(sf_mlir *r, sf_mlir_op *op)
{
    do {
        if (sf_scan_is(&r->scan, '%')) {
            SF_TRY(sf_mlir_operand(r, op));
            continue;
        }
        sf_scan start = r->scan;
        sf_str key = sf_scan_name(&r->scan);
        bool taken = sf_scan_take(&r->scan, '=');
        if (taken && sf_str_is(key, "batching_dims"))
            SF_TRY(parse_dim_pairs(r, op, "lhs_batching_dimensions", "rhs_batching_dimensions"));
        else if (taken && sf_str_is(key, "contracting_dims"))
            SF_TRY(
                parse_dim_pairs(r, op, "lhs_contracting_dimensions", "rhs_contracting_dimensions"));
        else if (taken && sf_str_is(key, "algorithm"))
            SF_TRY(parse_algorithm(r, op));
        else {
            r->scan = start;
            SF_TRY(parse_pair(r, op));
        }
    } while (sf_scan_take(&r->scan, ','));
    SF_TRY(parse_dictionary(r, op));
    return sf_mlir_op_types(r, op);
}

static sf_status window_entry(sf_mlir *r, sf_str key, bool has_value, sf_loc loc, void *context)
{
    sf_mlir_op *op = context;
    int slot = sf_mlir_slot(op->def, key);
    if (slot < 0 || !has_value || op->def->attrs[slot].kind != SF_ATTR_INTS) {
        SF_MLIR_FAIL(r, SF_EINPUT, loc, "a window has no '%.*s'", SF_STR_ARGS(key));
        return sf_hint(r->diag, "it has stride, pad, lhs_dilate, rhs_dilate and reverse");
    }
    return sf_mlir_attr(r, &op->def->attrs[slot], true, &op->attrs[slot]);
}

static sf_status parse_conv_form(sf_mlir *r, sf_mlir_op *op)
{
    SF_TRY(sf_mlir_take(r, '('));
    SF_TRY(parse_operands(r, op, ')'));
    SF_TRY(take_word(r, "dim_numbers"));
    SF_TRY(sf_mlir_take(r, '='));
    SF_TRY(sf_mlir_conv_dims(r, op->def, op->attrs));
    if (sf_scan_take(&r->scan, ',')) {
        SF_TRY(take_word(r, "window"));
        SF_TRY(sf_mlir_take(r, '='));
        SF_TRY(sf_mlir_entries(r, window_entry, op));
    }
    SF_TRY(parse_dictionary(r, op));
    return sf_mlir_op_types(r, op);
}

/* `[0:4, 0:8:2]` */
static sf_status parse_slice_form(sf_mlir *r, sf_mlir_op *op)
{
    int64_t parts[3][SF_MAX_RANK];
    int count = 0;
    SF_TRY(sf_mlir_operand(r, op));
    SF_TRY(sf_mlir_take(r, '['));
    while (!sf_scan_is(&r->scan, ']')) {
        if (count == SF_MAX_RANK)
            return sf_mlir_expected(r, "at most 16 dimensions");
        bool good = sf_scan_int(&r->scan, &parts[0][count]);
        good = good && sf_scan_take(&r->scan, ':') && sf_scan_int(&r->scan, &parts[1][count]);
        parts[2][count] = 1;
        if (!good || (sf_scan_take(&r->scan, ':') && !sf_scan_int(&r->scan, &parts[2][count])))
            return sf_mlir_expected(r, "a range such as 0:4 or 0:8:2");
        count++;
        if (!sf_scan_take(&r->scan, ','))
            break;
    }
    SF_TRY(sf_mlir_take(r, ']'));
    static const char *const names[] = {"start_indices", "limit_indices", "strides"};
    for (int i = 0; i < 3; i++)
        op->attrs[slot_named(op, names[i])] = sf_attr_ints(r->pool, count, parts[i]);
    SF_TRY(parse_dictionary(r, op));
    return sf_mlir_op_types(r, op);
}

/* `(%a init: %b), (%c init: %d)`: the operands are all inputs, then all initial values. */
static sf_status parse_inits(sf_mlir *r, sf_mlir_op *op)
{
    size_t inits = r->ninits;
    do {
        sf_value init;
        SF_TRY(sf_mlir_take(r, '('));
        SF_TRY(sf_mlir_operand(r, op));
        SF_TRY(take_word(r, "init"));
        SF_TRY(sf_mlir_take(r, ':'));
        SF_TRY(sf_mlir_use(r, &init));
        op->poisoned = op->poisoned || init == SF_NONE;
        SF_PUSH(&r->arena, r->inits, r->ninits, r->init_capacity, init);
        SF_TRY(sf_mlir_take(r, ')'));
    } while (sf_scan_take(&r->scan, ','));
    for (size_t i = inits; i < r->ninits; i++)
        SF_PUSH(&r->arena, r->operands, r->noperands, r->operand_capacity, r->inits[i]);
    r->ninits = inits;
    return SF_OK;
}

static sf_status parse_across(sf_mlir *r, sf_mlir_op *op)
{
    SF_TRY(take_word(r, "across"));
    SF_TRY(take_word(r, "dimensions"));
    SF_TRY(sf_mlir_take(r, '='));
    int slot = slot_named(op, "dimensions");
    SF_TRY(sf_mlir_attr(r, &op->def->attrs[slot], false, &op->attrs[slot]));
    SF_TRY(parse_dictionary(r, op));
    return sf_mlir_op_types(r, op);
}

/* The body of `applies stablehlo.add`: two scalars of the type of the initial value, one op. */
static sf_status make_body(sf_mlir *r, sf_mlir_op *op, const sf_opdef *applied)
{
    if (op->poisoned)
        return SF_OK;
    if (r->noperands - op->operands != 2)
        return SF_MLIR_FAIL(r, SF_EINPUT, op->loc, "'applies' is for one operand");
    const sf_type *type = sf_type_of(r->graph, r->operands[r->noperands - 1]);
    sf_mlir_body body = {.block = sf_block_new(r->graph)};
    sf_mlir_op inner = {.def = applied,
                        .loc = op->loc,
                        .operands = r->noperands,
                        .types = r->ntypes,
                        .regions = r->nregions};
    for (int i = 0; i < 2; i++) {
        sf_value argument = sf_block_argument(r->graph, body.block, type);
        SF_PUSH(&r->arena, r->operands, r->noperands, r->operand_capacity, argument);
    }
    SF_PUSH(&r->arena, r->types, r->ntypes, r->type_capacity, type);
    sf_node *node;
    SF_TRY(sf_mlir_build(r, body.block, &inner, &node));
    sf_block_return(r->graph, body.block, 1, &node->result);
    r->noperands = inner.operands;
    r->ntypes = inner.types;
    sf_mlir_region(r, op, &body);
    return SF_OK;
}

/* One parameter of a reducer, pushed on r->results and r->types for later. */
static sf_status parse_reducer_parameter(sf_mlir *r)
{
    sf_mlir_result parameter = {.loc = sf_mlir_here(r)};
    parameter.name = sf_scan_sigil(&r->scan, '%');
    if (!parameter.name.length)
        return sf_mlir_expected(r, "an argument such as %arg0");
    const sf_type *type;
    uint32_t place;
    SF_TRY(sf_mlir_parameter_type(r, &type));
    SF_TRY(sf_mlir_place_at(r, &place));
    SF_PUSH(&r->arena, r->results, r->nresults, r->result_capacity, parameter);
    SF_PUSH(&r->arena, r->types, r->ntypes, r->type_capacity, type);
    return SF_OK;
}

/* `reducer(%a: t, %b: t) (%c: u, %d: u) { ... }`: the arguments are all first ones, then all second
 * ones. */
static sf_status parse_reducer(sf_mlir *r, sf_mlir_op *op)
{
    size_t names = r->nresults, types = r->ntypes;
    SF_TRY(sf_mlir_descend(r));
    SF_TRY(take_word(r, "reducer"));
    while (sf_scan_take(&r->scan, '(')) {
        SF_TRY(parse_reducer_parameter(r));
        SF_TRY(sf_mlir_take(r, ','));
        SF_TRY(parse_reducer_parameter(r));
        SF_TRY(sf_mlir_take(r, ')'));
    }
    SF_TRY(sf_mlir_take(r, '{'));
    size_t outer = sf_mlir_scope_open(r), count = r->nresults - names;
    sf_mlir_body body = {.block = sf_block_new(r->graph)};
    for (size_t i = 0; i < count; i++) {
        size_t at = i < count / 2 ? 2 * i : 2 * (i - count / 2) + 1;
        const sf_mlir_result *parameter = &r->results[names + at];
        SF_TRY(sf_mlir_argument(r, &body, parameter->name, r->types[types + at], parameter->loc));
    }
    r->nresults = names;
    r->ntypes = types;
    SF_TRY(sf_mlir_ops(r, &body));
    sf_mlir_region(r, op, &body);
    sf_mlir_scope_close(r, outer);
    r->depth--;
    return SF_OK;
}

static sf_status parse_reduce_form(sf_mlir *r, sf_mlir_op *op)
{
    SF_TRY(parse_inits(r, op));
    if (!sf_scan_word(&r->scan, "applies")) {
        SF_TRY(parse_across(r, op));
        return parse_reducer(r, op);
    }
    const sf_opdef *applied;
    sf_loc loc = sf_mlir_here(r);
    sf_str name = sf_scan_name(&r->scan);
    if (!name.length)
        return sf_mlir_expected(r, "an op");
    SF_TRY(sf_mlir_find_op(r, name, loc, &applied));
    SF_TRY(parse_across(r, op));
    return make_body(r, op, applied);
}

/* `{ ops }` with the loop's variables, whose names are on r->results, as arguments. */
static sf_status parse_while_region(sf_mlir *r, sf_mlir_op *op, size_t names)
{
    SF_TRY(sf_mlir_take(r, '{'));
    size_t outer = sf_mlir_scope_open(r), count = r->nresults - names;
    sf_mlir_body body = {.block = sf_block_new(r->graph)};
    for (size_t i = 0; i < count; i++) {
        const sf_mlir_result *variable = &r->results[names + i];
        SF_TRY(sf_mlir_argument(r, &body, variable->name, r->types[op->types + i], variable->loc));
    }
    SF_TRY(sf_mlir_ops(r, &body));
    sf_mlir_region(r, op, &body);
    sf_mlir_scope_close(r, outer);
    return SF_OK;
}

static sf_status parse_while_form(sf_mlir *r, sf_mlir_op *op)
{
    size_t names = r->nresults;
    SF_TRY(sf_mlir_take(r, '('));
    while (!sf_scan_is(&r->scan, ')')) {
        sf_mlir_result variable = {.loc = sf_mlir_here(r)};
        variable.name = sf_scan_sigil(&r->scan, '%');
        if (!variable.name.length)
            return sf_mlir_expected(r, "a variable such as %iterArg");
        SF_TRY(sf_mlir_take(r, '='));
        SF_TRY(sf_mlir_operand(r, op));
        SF_PUSH(&r->arena, r->results, r->nresults, r->result_capacity, variable);
        if (!sf_scan_take(&r->scan, ','))
            break;
    }
    SF_TRY(sf_mlir_take(r, ')'));
    if (r->nresults > names)
        SF_TRY(sf_mlir_op_types(r, op));
    if (r->ntypes - op->types != r->nresults - names)
        return SF_MLIR_FAIL(r, SF_EINPUT, op->loc, "while has %zu variables and %zu types",
                            r->nresults - names, r->ntypes - op->types);
    if (sf_scan_word(&r->scan, "attributes"))
        SF_TRY(sf_mlir_dictionary(r, op->def, op->attrs));
    SF_TRY(sf_mlir_descend(r));
    SF_TRY(take_word(r, "cond"));
    SF_TRY(parse_while_region(r, op, names));
    SF_TRY(take_word(r, "do"));
    SF_TRY(parse_while_region(r, op, names));
    r->depth--;
    r->nresults = names;
    return SF_OK;
}

/* `@target(%a, ...)`: the target goes to the first attribute that is a text. */
static sf_status parse_call_form(sf_mlir *r, sf_mlir_op *op)
{
    sf_str target;
    int slot = 0;
    while (slot < op->def->nattrs && op->def->attrs[slot].kind != SF_ATTR_TEXT)
        slot++;
    SF_ASSERT(slot < op->def->nattrs);
    SF_TRY(sf_mlir_symbol(r, &target));
    op->attrs[slot] = sf_attr_text(r->pool, target);
    SF_TRY(sf_mlir_take(r, '('));
    SF_TRY(parse_operands(r, op, ')'));
    SF_TRY(parse_dictionary(r, op));
    return sf_mlir_op_types(r, op);
}

sf_status sf_mlir_pretty(sf_mlir *r, sf_mlir_op *op)
{
    switch (op->def->form) {
    case SF_FORM_OPERANDS:
        return parse_operands_form(r, op);
    case SF_FORM_CONSTANT:
        return parse_constant_form(r, op);
    case SF_FORM_COMPARE:
        return parse_compare_form(r, op);
    case SF_FORM_DOT:
        return parse_dot_form(r, op);
    case SF_FORM_CONV:
        return parse_conv_form(r, op);
    case SF_FORM_SLICE:
        return parse_slice_form(r, op);
    case SF_FORM_REDUCE:
        return parse_reduce_form(r, op);
    case SF_FORM_WHILE:
        return parse_while_form(r, op);
    case SF_FORM_CALL:
        return parse_call_form(r, op);
    case SF_FORM_PAREN:
        return parse_paren_form(r, op);
    case SF_FORM_GENERIC:
        break;
    }
    return SF_MLIR_FAIL(r, SF_EINPUT, op->loc, "%s.%s is only read in the form \"%s.%s\"(...)",
                        op->def->dialect, op->def->name, op->def->dialect, op->def->name);
}
