/* The reader of StableHLO text: the module around the functions, and the steps after all of the
 * text is read. */
#include <string.h>

#include "front/stablehlo/mlir_reader.h"
#include "op/op.h"
#include "op/slots.h"

static sf_status parse_items(sf_mlir *r, bool in_module);

/* `#name = loc(...)` or `#name = value`. */
static sf_status parse_attr_alias(sf_mlir *r)
{
    sf_str name = sf_scan_sigil(&r->scan, '#');
    if (!name.length)
        return sf_mlir_expected(r, "an alias such as #loc1");
    SF_TRY(sf_mlir_take(r, '='));
    sf_scan_skip(&r->scan);
    sf_scan value = r->scan, peek = r->scan;
    if (!sf_scan_word(&peek, "loc")) {
        SF_TRY(sf_mlir_skip_value(r));
        sf_mlir_alias *alias = sf_mlir_alias_of(r, '#', name);
        alias->value = value;
        alias->length = (size_t)(r->scan.at - value.at);
        return SF_OK;
    }
    uint32_t place;
    SF_TRY(sf_mlir_place_at(r, &place));
    sf_mlir_define_place(r, name, place);
    return SF_OK;
}

static sf_status parse_type_alias(sf_mlir *r)
{
    sf_str name = sf_scan_sigil(&r->scan, '!');
    if (!name.length)
        return sf_mlir_expected(r, "an alias such as !t");
    SF_TRY(sf_mlir_take(r, '='));
    const sf_type *type;
    SF_TRY(sf_mlir_tensor_type(r, &type));
    sf_mlir_alias_of(r, '!', name)->type = type;
    return SF_OK;
}

/* `{-# ... #-}`: resources for tools that are not ours. */
static sf_status skip_metadata(sf_mlir *r)
{
    const char *end = memmem(r->scan.at, (size_t)(r->scan.end - r->scan.at), "#-}", 3);
    if (!end)
        return SF_MLIR_FAIL(r, SF_EINPUT, sf_mlir_here(r), "the metadata has no end");
    while (r->scan.at < end) {
        sf_scan_skip(&r->scan);
        r->scan.at += r->scan.at < end;
    }
    r->scan.at = end + 3;
    return SF_OK;
}

/* The items of a module, from after its opening bracket. */
static sf_status parse_module_body(sf_mlir *r)
{
    SF_TRY(sf_mlir_descend(r));
    SF_TRY(parse_items(r, true));
    r->depth--;
    return SF_OK;
}

static sf_status parse_module(sf_mlir *r)
{
    uint32_t place;
    sf_str name = {0};
    if (sf_scan_is(&r->scan, '@'))
        SF_TRY(sf_mlir_symbol(r, &name));
    if (name.length)
        r->graph->name = sf_pool_name(r->pool, name);
    SF_TRY(sf_mlir_skip_attributes(r));
    SF_TRY(sf_mlir_take(r, '{'));
    SF_TRY(parse_module_body(r));
    return sf_mlir_place_at(r, &place);
}

/* `"builtin.module"() <{...}> ({ ... }) {...} : () -> ()` */
static sf_status parse_generic_module(sf_mlir *r)
{
    uint32_t place;
    SF_TRY(sf_mlir_take(r, '('));
    SF_TRY(sf_mlir_take(r, ')'));
    if (sf_scan_is(&r->scan, '<') && !sf_scan_balanced(&r->scan))
        return sf_mlir_expected(r, "'>'");
    SF_TRY(sf_mlir_take(r, '('));
    SF_TRY(sf_mlir_take(r, '{'));
    if (sf_scan_sigil(&r->scan, '^').length)
        SF_TRY(sf_mlir_take(r, ':'));
    SF_TRY(parse_module_body(r));
    SF_TRY(sf_mlir_take(r, ')'));
    if (sf_scan_is(&r->scan, '{') && !sf_scan_balanced(&r->scan))
        return sf_mlir_expected(r, "attributes in {}");
    if (!sf_scan_take(&r->scan, ':') || !sf_scan_value(&r->scan))
        return sf_mlir_expected(r, "': () -> ()'");
    return sf_mlir_place_at(r, &place);
}

static sf_status parse_item(sf_mlir *r)
{
    sf_scan start = r->scan;
    sf_loc loc = sf_mlir_here(r);
    sf_str name;
    if (*r->scan.at == '#')
        return parse_attr_alias(r);
    if (*r->scan.at == '!')
        return parse_type_alias(r);
    if (strncmp(r->scan.at, "{-#", 3) == 0)
        return skip_metadata(r);
    bool generic = *r->scan.at == '"';
    if (generic)
        SF_TRY(sf_mlir_string(r, &name));
    else
        name = sf_scan_name(&r->scan);
    if (sf_str_is(name, "func.func"))
        return sf_mlir_func(r, loc, generic);
    if (sf_str_is(name, "builtin.module") || sf_str_is(name, "module"))
        return generic ? parse_generic_module(r) : parse_module(r);
    if (sf_str_starts(name, "sdy.")) { /* meshes of Shardy: nothing that is computed */
        r->scan = start;
        sf_scan_recover(&r->scan);
        return SF_OK;
    }
    r->scan = start;
    return sf_mlir_expected(r, "a module or func.func");
}

/* Up to the bracket that ends the module, which is taken, or to the end of the text. */
static sf_status parse_items(sf_mlir *r, bool in_module)
{
    int depth = r->depth;
    size_t scope = r->scope;
    while (!(in_module && sf_scan_take(&r->scan, '}'))) {
        if (sf_scan_done(&r->scan))
            return in_module ? sf_mlir_expected(r, "'}'") : SF_OK;
        sf_scan start = r->scan;
        sf_status status = parse_item(r);
        if (status == SF_OK)
            continue;
        r->depth = depth;
        if (r->scope != scope)
            sf_mlir_scope_close(r, scope);
        SF_TRY(sf_mlir_recover(r, start, status));
    }
    return SF_OK;
}

static sf_status check_called(sf_mlir *r, const sf_node *node)
{
    const char *name = node->attrs[SF_CALL_CALLEE]->text;
    const sf_func *func = sf_mlir_func_find(r, name);
    if (!func)
        return SF_MLIR_FAIL(r, SF_EINPUT, node->loc, "there is no function @%s", name);
    const sf_block *block = func->block;
    if (node->noperands != block->narguments || node->nresults != block->nresults)
        return SF_MLIR_FAIL(r, SF_EINPUT, node->loc,
                            "@%s takes %u arguments and has %u results, not %u and %u", name,
                            block->narguments, block->nresults, node->noperands, node->nresults);
    for (uint32_t i = 0; i < node->noperands; i++)
        if (sf_type_of(r->graph, node->operands[i]) != sf_type_of(r->graph, block->arguments[i]))
            return SF_MLIR_FAIL(r, SF_EINPUT, node->loc, "argument %u of @%s is of another type", i,
                                name);
    for (uint32_t i = 0; i < node->nresults; i++)
        if (sf_type_of(r->graph, node->result + i) != sf_type_of(r->graph, block->results[i]))
            return SF_MLIR_FAIL(r, SF_EINPUT, node->loc, "result %u of @%s is of another type", i,
                                name);
    return SF_OK;
}

/* The name of an argument in the text: from its location, or a name that a person chose. Printers
 * make up %arg0 and %0. */
static const char *name_of_call(sf_mlir *r, const sf_mlir_wanted *wanted)
{
    const char *path = sf_mlir_path(r, wanted->place);
    sf_str ssa = wanted->ssa;
    size_t digits = sf_str_starts(ssa, "arg") ? 3 : 0;
    while (digits < ssa.length && ssa.at[digits] >= '0' && ssa.at[digits] <= '9')
        digits++;
    return path || digits == ssa.length ? path : sf_pool_string(r->pool, ssa);
}

static sf_status finish_module(sf_mlir *r)
{
    for (size_t i = 0; i < r->graph->nnodes; i++) {
        sf_status status =
            sf_is(r->graph->nodes[i], SF_OP_CALL) ? check_called(r, r->graph->nodes[i]) : SF_OK;
        if (status != SF_OK)
            SF_TRY(sf_mlir_note(r, status));
    }
    sf_loc top = {r->file, 1, 1};
    if (!r->module->entry)
        return SF_MLIR_FAIL(r, SF_EINPUT, top, "there is no function in the text");
    for (size_t i = 0; i < r->nwanted; i++)
        *r->wanted[i].name = name_of_call(r, &r->wanted[i]);
    const char **paths = SF_ARRAY(&r->graph->arena, r->graph->nnodes, const char *);
    for (size_t i = 0; i < r->nnode_places; i++)
        paths[i] = sf_mlir_path(r, r->node_places[i]);
    r->module->paths = paths;
    return r->status;
}

/* The stacks are never NULL, so that their parts are arrays also where they are empty. */
static void make_stacks(sf_mlir *r)
{
    r->operand_capacity = r->type_capacity = r->region_capacity = r->int_capacity = 64;
    r->operands = SF_ARRAY(&r->arena, r->operand_capacity, sf_value);
    r->types = SF_ARRAY(&r->arena, r->type_capacity, const sf_type *);
    r->regions = SF_ARRAY(&r->arena, r->region_capacity, sf_block *);
    r->ints = SF_ARRAY(&r->arena, r->int_capacity, int64_t);
}

sf_status sf_stablehlo_read(sf_str text, const char *file, sf_module *module, sf_diag *diag)
{
    SF_TRY(sf_text_check(&text, file, diag));
    /* A byte order mark hides the kind of text from the caller. */
    if (sf_str_starts(text, "HloModule"))
        return sf_hlo_read(text, file, module, diag);
    sf_mlir reader = {
        .scan = {text.at, text.at + text.length, text.at, 1},
        .file = sf_pool_string(module->graph->pool, sf_str_of(file)),
        .module = module,
        .graph = module->graph,
        .pool = module->graph->pool,
        .diag = diag,
    };
    sf_mlir *r = &reader;
    sf_mlir_place unknown = {.state = SF_PLACE_DONE};
    SF_PUSH(&r->arena, r->places, r->nplaces, r->place_capacity, unknown);
    make_stacks(r);
    sf_status status = parse_items(r, false);
    if (status == SF_OK)
        status = r->status;
    if (status == SF_OK)
        status = finish_module(r);
    sf_arena_free(&r->arena);
    return r->status != SF_OK ? r->status : status;
}
