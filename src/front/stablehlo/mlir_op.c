/* Whole ops: the generic form, replacements of other ops, and the results that they define. */
#include "front/stablehlo/mlir_reader.h"
#include "op/op.h"
#include "op/slots.h"

/* The text after the quoted name: (operands) <{...}> ({...}, {...}) {...} : types. */
static sf_status parse_generic(sf_mlir *r, sf_mlir_op *op)
{
    SF_TRY(sf_mlir_take(r, '('));
    if (!sf_scan_is(&r->scan, ')')) {
        do {
            SF_TRY(sf_mlir_operand(r, op));
        } while (sf_scan_take(&r->scan, ','));
    }
    SF_TRY(sf_mlir_take(r, ')'));
    if (sf_scan_take(&r->scan, '<')) {
        SF_TRY(sf_mlir_dictionary(r, op->def, op->attrs));
        SF_TRY(sf_mlir_take(r, '>'));
    }
    if (sf_scan_take(&r->scan, '(')) {
        do {
            SF_TRY(sf_mlir_generic_region(r, op));
        } while (sf_scan_take(&r->scan, ','));
        SF_TRY(sf_mlir_take(r, ')'));
    }
    if (sf_scan_is(&r->scan, '{'))
        SF_TRY(sf_mlir_dictionary(r, op->def, op->attrs));
    return sf_mlir_op_types(r, op);
}

/* An `if` is a `case` whose index is the predicate: 0 takes the branch for false. */
static sf_status turn_into_case(sf_mlir *r, sf_block *block, sf_mlir_op *op)
{
    if (op->poisoned)
        return SF_OK;
    if (r->nregions - op->regions != 2 || r->noperands - op->operands != 1)
        return SF_MLIR_FAIL(r, SF_EINPUT, op->loc, "if takes one operand and two regions");
    sf_value *predicate = &r->operands[op->operands];
    const sf_type *type = sf_type_of(r->graph, *predicate);
    if (type->dtype != SF_PRED || type->rank != 0)
        return SF_MLIR_FAIL(r, SF_EINPUT, op->loc, "the operand of if is a tensor<i1>");
    sf_block **regions = &r->regions[op->regions];
    sf_block *if_true = regions[0];
    regions[0] = regions[1];
    regions[1] = if_true;
    sf_mlir_op convert = {.def = sf_opdef_get(SF_OP_CONVERT),
                          .loc = op->loc,
                          .operands = op->operands,
                          .types = r->ntypes,
                          .regions = r->nregions};
    const sf_type *index = sf_type_with(r->pool, type, SF_S32);
    SF_PUSH(&r->arena, r->types, r->ntypes, r->type_capacity, index);
    sf_node *node;
    SF_TRY(sf_mlir_build(r, block, &convert, &node));
    r->ntypes--;
    r->operands[op->operands] = node->result;
    return SF_OK;
}

static sf_status define_results(sf_mlir *r, size_t first, const sf_mlir_op *op, const sf_node *node)
{
    size_t named = 0, made = r->ntypes - op->types;
    for (size_t i = first; i < r->nresults; i++)
        named += r->results[i].count;
    if (r->nresults > first && named != made)
        return SF_MLIR_FAIL(r, SF_EINPUT, r->results[first].loc,
                            "%zu names for the %zu results of %s", named, made, op->def->name);
    sf_value value = node ? node->result : SF_NONE;
    for (size_t i = first; i < r->nresults; i++) {
        const sf_mlir_result *result = &r->results[i];
        SF_TRY(sf_mlir_define(r, result->name, value, result->count, result->loc));
        value += node ? result->count : 0;
    }
    return SF_OK;
}

/* `sdy.sharding_constraint %a <@mesh, [{"x"}]> : type` and its generic form are the custom call
 * @Sharding, which passes its operand on; the sharding is kept as its text. */
static sf_status parse_constraint(sf_mlir *r, sf_mlir_op *op, bool generic)
{
    sf_buf text = {0};
    SF_TRY(sf_mlir_find_op(r, sf_str_of("stablehlo.custom_call"), op->loc, &op->def));
    op->attrs[SF_CUSTOM_TARGET] = sf_attr_text(r->pool, sf_str_of("Sharding"));
    if (generic)
        return parse_generic(r, op);
    SF_TRY(sf_mlir_operand(r, op));
    const char *first = (sf_scan_skip(&r->scan), r->scan.at);
    if (*first != '<' || !sf_scan_balanced(&r->scan))
        return sf_mlir_expected(r, "a sharding in <>");
    sf_buf_puts(&text, "#sdy.sharding");
    sf_buf_add(&text, first, (size_t)(r->scan.at - first));
    op->attrs[SF_CUSTOM_SHARDING] = sf_attr_text(r->pool, (sf_str){text.text, text.length});
    sf_buf_free(&text);
    if (sf_scan_is(&r->scan, '{') && !sf_scan_balanced(&r->scan))
        return sf_mlir_expected(r, "attributes in {}");
    return sf_mlir_op_types(r, op);
}

/* Nodes that were made on the way (the body of a short reduce) get the place of the op too. */
static void set_place(sf_mlir *r, uint32_t place)
{
    while (r->nnode_places < r->graph->nnodes)
        SF_PUSH(&r->arena, r->node_places, r->nnode_places, r->node_place_capacity, place);
}

sf_status sf_mlir_parse_op(sf_mlir *r, sf_block *block, sf_str name, sf_loc loc, bool generic,
                           size_t first_result)
{
    sf_mlir_op op = {
        .loc = loc, .operands = r->noperands, .types = r->ntypes, .regions = r->nregions};
    op.is_if = generic && sf_str_is(name, "stablehlo.if");
    if (sf_str_is(name, "sdy.sharding_constraint")) {
        SF_TRY(parse_constraint(r, &op, generic));
    } else {
        SF_TRY(sf_mlir_find_op(r, op.is_if ? sf_str_of("stablehlo.case") : name, loc, &op.def));
        SF_TRY(generic ? parse_generic(r, &op) : sf_mlir_pretty(r, &op));
    }
    const sf_attr *target = op.def->id == SF_OP_CUSTOM_CALL ? op.attrs[SF_CUSTOM_TARGET] : NULL;
    if (target)
        SF_TRY(sf_mlir_end(r, sf_refuse_target(sf_str_of(target->text), loc, r->diag)));
    if (op.is_if)
        SF_TRY(turn_into_case(r, block, &op));
    sf_node *node;
    SF_TRY(sf_mlir_build(r, block, &op, &node));
    uint32_t place;
    SF_TRY(sf_mlir_place_at(r, &place));
    set_place(r, place);
    return define_results(r, first_result, &op, node);
}
