/* The parts of an op: its name, operands, results and types, and the way from there to a node. */
#include <string.h>

#include "base/hash.h"
#include "front/stablehlo/mlir_reader.h"
#include "op/node_builder.h"

enum { CACHE_SIZE = 256 };

/* The op that was last looked up under a hash: a file names few different ones. */
struct sf_mlir_op_cache {
    struct {
        sf_str name;
        const sf_opdef *def;
    } entries[CACHE_SIZE];
};

static const sf_opdef *lookup_op(sf_str name)
{
    const char *dot = memchr(name.at, '.', name.length);
    sf_str dialect = {name.at, dot ? (size_t)(dot - name.at) : 0};
    sf_str rest = dot ? (sf_str){dot + 1, name.length - dialect.length - 1} : name;
    bool call = sf_str_is(name, "call") || sf_str_is(name, "func.call");
    return sf_opdef_find(call ? sf_str_of("stablehlo") : dialect, rest);
}

static sf_status unknown_op(sf_mlir *r, sf_str name, sf_loc loc)
{
    static const struct {
        const char *name, *advice; /* a dialect ends with its dot */
    } foreign[] = {
        {"mhlo.", "convert the program to StableHLO first"},
        {"vhlo.", "deserialize it with stablehlo-translate first"},
        {"sdy.", "of Shardy only meshes and sharding_constraint are read; export without it "
                 "(jax_use_shardy_partitioner=False)"},
        {"cf.", "control flow is written with stablehlo.while, case and if"},
        {"scf.", "control flow is written with stablehlo.while, case and if"},
    };
    SF_TRY(sf_mlir_end(r, sf_refuse_op(name, loc, r->diag)));
    SF_MLIR_FAIL(r, SF_EUNSUPPORTED, loc, "unknown op %.*s", SF_STR_ARGS(name));
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (foreign[i].name[strlen(foreign[i].name) - 1] == '.'
                ? sf_str_starts(name, foreign[i].name)
                : sf_str_is(name, foreign[i].name))
            return sf_hint(r->diag, "%s", foreign[i].advice), SF_EUNSUPPORTED;
    const char *dot = memchr(name.at, '.', name.length);
    size_t skipped = dot ? (size_t)(dot + 1 - name.at) : 0;
    const sf_opdef *near = sf_opdef_nearest((sf_str){name.at + skipped, name.length - skipped});
    if (near)
        sf_hint(r->diag, "did you mean %s.%s?", near->dialect, near->name);
    else if (!sf_str_starts(name, "stablehlo.") && !sf_str_starts(name, "chlo."))
        sf_hint(r->diag, "ops are of the dialects stablehlo, chlo and func");
    else
        sf_hint(r->diag, "docs/reference/ops.md lists the ops that are read");
    return SF_EUNSUPPORTED;
}

sf_status sf_mlir_find_op(sf_mlir *r, sf_str name, sf_loc loc, const sf_opdef **out)
{
    if (!r->op_cache)
        r->op_cache = SF_NEW(&r->arena, struct sf_mlir_op_cache);
    size_t at = sf_hash_bytes(0, name.at, name.length) % CACHE_SIZE;
    if (!r->op_cache->entries[at].def || !sf_str_equal(r->op_cache->entries[at].name, name)) {
        const sf_opdef *def = lookup_op(name);
        if (!def)
            return unknown_op(r, name, loc);
        SF_ASSERT(def->nattrs <= SF_MLIR_MAX_ATTRS);
        r->op_cache->entries[at].name = name;
        r->op_cache->entries[at].def = def;
    }
    *out = r->op_cache->entries[at].def;
    return SF_OK;
}

sf_status sf_mlir_operand(sf_mlir *r, sf_mlir_op *op)
{
    sf_value value;
    SF_TRY(sf_mlir_use(r, &value));
    op->poisoned = op->poisoned || value == SF_NONE;
    SF_PUSH(&r->arena, r->operands, r->noperands, r->operand_capacity, value);
    return SF_OK;
}

sf_status sf_mlir_result_names(sf_mlir *r)
{
    if (!sf_scan_is(&r->scan, '%'))
        return SF_OK;
    do {
        sf_mlir_result result = {.loc = sf_mlir_here(r), .count = 1};
        result.name = sf_scan_sigil(&r->scan, '%');
        if (!result.name.length)
            return sf_mlir_expected(r, "a result such as %0");
        int64_t count = 1;
        if (sf_scan_take(&r->scan, ':') && (!sf_scan_int(&r->scan, &count) || count < 1))
            return sf_mlir_expected(r, "the number of results");
        result.count = count < INT32_MAX ? (uint32_t)count : INT32_MAX;
        SF_PUSH(&r->arena, r->results, r->nresults, r->result_capacity, result);
    } while (sf_scan_take(&r->scan, ','));
    return sf_mlir_take(r, '=');
}

static sf_status check_operand(sf_mlir *r, const sf_mlir_op *op, size_t index, const sf_type *type,
                               sf_loc loc)
{
    sf_value value = r->operands[op->operands + index];
    if (value == SF_NONE || sf_type_of(r->graph, value) == type)
        return SF_OK;
    char have[SF_TYPE_TEXT], declared[SF_TYPE_TEXT];
    return SF_MLIR_FAIL(r, SF_EINPUT, loc, "operand %zu of %s is a %s, not a %s", index,
                        op->def->name, sf_type_text(sf_type_of(r->graph, value), have),
                        sf_type_text(type, declared));
}

static sf_status fail_type_count(sf_mlir *r, const sf_mlir_op *op, size_t count, sf_loc loc)
{
    return SF_MLIR_FAIL(r, SF_EINPUT, loc, "%zu types for the %zu operands of %s", count,
                        r->noperands - op->operands, op->def->name);
}

/* `(a, b) -> c`, from after the first parenthesis. */
static sf_status parse_operand_types(sf_mlir *r, sf_mlir_op *op)
{
    sf_loc loc = sf_mlir_here(r);
    size_t count = 0, noperands = r->noperands - op->operands;
    if (!sf_scan_is(&r->scan, ')')) {
        do {
            sf_loc here = sf_mlir_here(r);
            const sf_type *type;
            SF_TRY(sf_mlir_tensor_type(r, &type));
            if (count < noperands)
                SF_TRY(check_operand(r, op, count, type, here));
            count++;
        } while (sf_scan_take(&r->scan, ','));
    }
    SF_TRY(sf_mlir_take(r, ')'));
    if (count != noperands)
        return fail_type_count(r, op, count, loc);
    if (!sf_scan_text(&r->scan, "->"))
        return sf_mlir_expected(r, "'->'");
    return sf_mlir_result_types(r);
}

/* Types without an arrow: one for everything, one for each operand and each result, or, if the
 * first operand is of another type (select), one for that and one for the others. The one type of
 * complex is that of the result, whose parts the operands are. */
static sf_status spread_types(sf_mlir *r, sf_mlir_op *op, sf_loc loc)
{
    size_t count = r->ntypes - op->types, noperands = r->noperands - op->operands;
    int nresults = op->def->nresults;
    bool by_operand = nresults < 0;
    bool first_differs = count == 2 && noperands == 3 && nresults == 1;
    if (by_operand ? count != noperands : count != 1 && !first_differs)
        return fail_type_count(r, op, count, loc);
    for (size_t i = 0; i < noperands; i++) {
        size_t which = by_operand ? i : first_differs && i > 0;
        const sf_type *type = r->types[op->types + which];
        if (op->def->id == SF_OP_COMPLEX)
            type = sf_type_with(r->pool, type, sf_part_of(type->dtype));
        SF_TRY(check_operand(r, op, i, type, loc));
    }
    if (by_operand)
        return SF_OK;
    const sf_type *type = r->types[r->ntypes - 1];
    r->ntypes = op->types;
    for (int i = 0; i < nresults; i++)
        SF_PUSH(&r->arena, r->types, r->ntypes, r->type_capacity, type);
    return SF_OK;
}

sf_status sf_mlir_op_types(sf_mlir *r, sf_mlir_op *op)
{
    SF_TRY(sf_mlir_take(r, ':'));
    sf_loc loc = sf_mlir_here(r);
    if (sf_scan_take(&r->scan, '('))
        return parse_operand_types(r, op);
    SF_TRY(sf_mlir_type_list(r));
    if (!sf_scan_text(&r->scan, "->"))
        return spread_types(r, op, loc);
    size_t count = r->ntypes - op->types;
    if (count != r->noperands - op->operands)
        return fail_type_count(r, op, count, loc);
    for (size_t i = 0; i < count; i++)
        SF_TRY(check_operand(r, op, i, r->types[op->types + i], loc));
    r->ntypes = op->types;
    return sf_mlir_result_types(r);
}

sf_status sf_mlir_build(sf_mlir *r, sf_block *block, sf_mlir_op *op, sf_node **out)
{
    *out = NULL;
    if (op->poisoned)
        return SF_OK;
    sf_node_spec spec = {
        .def = op->def,
        .noperands = (uint32_t)(r->noperands - op->operands),
        .nresults = (uint32_t)(r->ntypes - op->types),
        .nregions = (uint32_t)(r->nregions - op->regions),
        .operands = r->operands + op->operands,
        .types = r->types + op->types,
        .attrs = op->attrs,
        .regions = r->regions + op->regions,
        .loc = op->loc,
    };
    return sf_build(r->graph, block, &spec, r->diag, out);
}
