/* Blocks: their arguments, their ops one after another, and their results. */
#include "front/stablehlo/mlir_reader.h"

sf_status sf_mlir_argument(sf_mlir *r, sf_mlir_body *body, sf_str name, const sf_type *type,
                           sf_loc loc)
{
    sf_value value = SF_NONE;
    if (type)
        value = sf_block_argument(r->graph, body->block, type);
    else
        body->bad = true;
    return sf_mlir_define(r, name, value, 1, loc);
}

sf_status sf_mlir_parameter_type(sf_mlir *r, const sf_type **type)
{
    SF_TRY(sf_mlir_take(r, ':'));
    sf_status status = sf_mlir_tensor_type(r, type);
    if (status != SF_EUNSUPPORTED)
        return status;
    *type = NULL;
    return sf_mlir_note(r, status);
}

void sf_mlir_region(sf_mlir *r, sf_mlir_op *op, const sf_mlir_body *body)
{
    op->poisoned = op->poisoned || body->bad;
    SF_PUSH(&r->arena, r->regions, r->nregions, r->region_capacity, body->block);
}

/* `^bb0(%a: type, %b: type):`, if it is there. */
static sf_status parse_label(sf_mlir *r, sf_mlir_body *body)
{
    if (!sf_scan_is(&r->scan, '^'))
        return SF_OK;
    if (!sf_scan_sigil(&r->scan, '^').length)
        return sf_mlir_expected(r, "a block such as ^bb0");
    if (sf_scan_take(&r->scan, '(') && !sf_scan_take(&r->scan, ')')) {
        do {
            sf_loc loc = sf_mlir_here(r);
            sf_str name = sf_scan_sigil(&r->scan, '%');
            const sf_type *type;
            uint32_t place;
            if (!name.length)
                return sf_mlir_expected(r, "an argument such as %arg0");
            SF_TRY(sf_mlir_parameter_type(r, &type));
            SF_TRY(sf_mlir_place_at(r, &place));
            SF_TRY(sf_mlir_argument(r, body, name, type, loc));
        } while (sf_scan_take(&r->scan, ','));
        SF_TRY(sf_mlir_take(r, ')'));
    }
    return sf_mlir_take(r, ':');
}

sf_status sf_mlir_generic_region(sf_mlir *r, sf_mlir_op *op)
{
    SF_TRY(sf_mlir_descend(r));
    size_t outer = sf_mlir_scope_open(r);
    sf_mlir_body body = {.block = sf_block_new(r->graph)};
    SF_TRY(sf_mlir_take(r, '{'));
    SF_TRY(parse_label(r, &body));
    SF_TRY(sf_mlir_ops(r, &body));
    sf_mlir_region(r, op, &body);
    sf_mlir_scope_close(r, outer);
    r->depth--;
    return SF_OK;
}

static sf_status check_returned(sf_mlir *r, const sf_mlir_body *body, const sf_mlir_op *op)
{
    size_t count = r->noperands - op->operands;
    if (!body->types)
        return SF_OK;
    if (count != body->ntypes)
        return SF_MLIR_FAIL(r, SF_EINPUT, op->loc,
                            "returns %zu values, the function has %u results", count, body->ntypes);
    for (size_t i = 0; i < count; i++) {
        sf_value value = r->operands[op->operands + i];
        if (value == SF_NONE || !body->types[i] || sf_type_of(r->graph, value) == body->types[i])
            continue;
        char have[SF_TYPE_TEXT], want[SF_TYPE_TEXT];
        return SF_MLIR_FAIL(r, SF_EINPUT, op->loc, "result %zu is a %s, the function returns a %s",
                            i, sf_type_text(sf_type_of(r->graph, value), have),
                            sf_type_text(body->types[i], want));
    }
    return SF_OK;
}

/* The text after `return`: `%a, %b : types`, or the generic form `(%a, %b) : (types) -> ()`. */
static sf_status parse_return(sf_mlir *r, sf_mlir_body *body, sf_loc loc, bool generic)
{
    static const sf_opdef returns = {.name = "return", .dialect = "stablehlo", .nresults = -1};
    sf_mlir_op op = {.def = &returns, .loc = loc, .operands = r->noperands, .types = r->ntypes};
    if (generic)
        SF_TRY(sf_mlir_take(r, '('));
    while (sf_scan_is(&r->scan, '%')) {
        SF_TRY(sf_mlir_operand(r, &op));
        if (!sf_scan_take(&r->scan, ','))
            break;
    }
    if (generic)
        SF_TRY(sf_mlir_take(r, ')'));
    if (sf_scan_is(&r->scan, '{') && !sf_scan_balanced(&r->scan))
        return sf_mlir_expected(r, "'}'");
    if (r->noperands > op.operands || generic || sf_scan_is(&r->scan, ':'))
        SF_TRY(sf_mlir_op_types(r, &op));
    SF_TRY(check_returned(r, body, &op));
    if (op.poisoned)
        body->bad = true;
    else
        sf_block_return(r->graph, body->block, (uint32_t)(r->noperands - op.operands),
                        r->operands + op.operands);
    body->returned = true;
    uint32_t place;
    return sf_mlir_place_at(r, &place);
}

/* The op is a terminator or is handed on. */
static sf_status parse_one(sf_mlir *r, sf_mlir_body *body)
{
    size_t first_result = r->nresults;
    SF_TRY(sf_mlir_result_names(r));
    sf_loc loc = sf_mlir_here(r);
    bool generic = *r->scan.at == '"';
    sf_str name;
    if (generic)
        SF_TRY(sf_mlir_string(r, &name));
    else
        name = sf_scan_name(&r->scan);
    if (!name.length)
        return sf_mlir_expected(r, "an op");
    if (sf_str_is(name, "stablehlo.return") || sf_str_is(name, "return") ||
        sf_str_is(name, "func.return"))
        return parse_return(r, body, loc, generic);
    return sf_mlir_parse_op(r, body->block, name, loc, generic, first_result);
}

/* Skips the remaining text of the block. */
static void skip_rest(sf_mlir *r)
{
    while (!sf_scan_done(&r->scan) && *r->scan.at != '}')
        sf_scan_recover(&r->scan);
}

/* Anything but an op that may follow in a block. */
static sf_status check_next(sf_mlir *r, const sf_mlir_body *body)
{
    if (sf_scan_done(&r->scan))
        return sf_mlir_expected(r, "'}'");
    if (*r->scan.at == '^') {
        SF_MLIR_FAIL(r, SF_EUNSUPPORTED, sf_mlir_here(r),
                     "a region with more than one block is not supported");
        sf_hint(r->diag, "control flow is written with stablehlo.while, case and if");
        return SF_EUNSUPPORTED;
    }
    if (body->returned)
        return sf_mlir_expected(r, "'}' after the return");
    return SF_OK;
}

/* Removes the traces of a failed op, and goes on with the next op. */
static sf_status fail_op(sf_mlir *r, sf_mlir_body *body, sf_scan start, const sf_mlir *before,
                         sf_status status)
{
    body->bad = true;
    r->depth = before->depth;
    if (r->scope != before->scope)
        sf_mlir_scope_close(r, before->scope);
    for (size_t i = before->nresults; i < r->nresults; i++)
        sf_mlir_poison(r, r->results[i].name);
    return sf_mlir_recover(r, start, status);
}

sf_status sf_mlir_ops(sf_mlir *r, sf_mlir_body *body)
{
    const sf_mlir before = *r;
    while (!sf_scan_is(&r->scan, '}')) {
        sf_status status = check_next(r, body);
        if (status != SF_OK) {
            body->bad = true;
            SF_TRY(sf_mlir_note(r, status));
            skip_rest(r);
            break;
        }
        sf_scan start = r->scan;
        status = parse_one(r, body);
        if (status != SF_OK)
            SF_TRY(fail_op(r, body, start, &before, status));
        r->noperands = before.noperands;
        r->ntypes = before.ntypes;
        r->nregions = before.nregions;
        r->nresults = before.nresults;
        r->ninits = before.ninits;
    }
    sf_loc end = sf_mlir_here(r);
    if (sf_scan_done(&r->scan))
        return r->status;
    SF_TRY(sf_mlir_take(r, '}'));
    if (!body->returned && !body->bad)
        return SF_MLIR_FAIL(r, SF_EINPUT, end, "the block ends without a return");
    return SF_OK;
}
