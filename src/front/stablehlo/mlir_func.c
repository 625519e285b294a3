/* Functions: their names, parameters, results and bodies. */
#include <string.h>

#include "base/hash.h"
#include "front/stablehlo/mlir_reader.h"

typedef struct parameter {
    sf_str name;
    sf_loc loc;
    const sf_type *type; /* NULL: not supported */
    uint32_t place;
    sf_argument info;
} parameter;

typedef struct outcome {
    const sf_type *type; /* NULL: not supported */
    sf_result info;
} outcome;

/* The header of a function. */
typedef struct header {
    sf_str name;
    sf_loc loc;
    bool is_private;
    parameter *parameters;
    size_t nparameters, parameter_capacity;
    outcome *outcomes;
    size_t noutcomes, outcome_capacity;
} header;

static void add_parameter(sf_mlir *r, header *h)
{
    parameter empty = {.info = {.next = SF_NONE}};
    SF_PUSH(&r->arena, h->parameters, h->nparameters, h->parameter_capacity, empty);
}

static void add_outcome(sf_mlir *r, header *h, const sf_type *type)
{
    outcome empty = {.type = type};
    SF_PUSH(&r->arena, h->outcomes, h->noutcomes, h->outcome_capacity, empty);
}

static bool is_sharding(sf_str name)
{
    return sf_str_is(name, "mhlo.sharding") || sf_str_is(name, "sdy.sharding") ||
           sf_str_is(name, "sheaf.sharding");
}

/* Its bytes; a name would have others. */
static sf_status sharding_text(sf_mlir *r, const char **out)
{
    sf_str text;
    SF_TRY(sf_mlir_value_bytes(r, &text));
    *out = sf_pool_string(r->pool, text);
    return SF_OK;
}

static sf_status argument_entry(sf_mlir *r, sf_str name, bool has_value, sf_loc loc, void *context)
{
    sf_argument *info = context;
    if (!has_value)
        return SF_OK;
    if (is_sharding(name))
        return sharding_text(r, &info->sharding);
    if (!sf_str_is(name, "tf.aliasing_output"))
        return sf_mlir_skip_value(r);
    int64_t next;
    if (!sf_scan_int(&r->scan, &next))
        return sf_mlir_expected(r, "the number of a result");
    if (next < 0 || next >= SF_NONE)
        return SF_MLIR_FAIL(r, SF_EINPUT, loc, "there is no result %lld", (long long)next);
    info->next = (uint32_t)next;
    info->next_from = SF_FROM_ALIAS;
    return sf_scan_take(&r->scan, ':') ? sf_mlir_skip_value(r) : SF_OK;
}

static sf_status result_entry(sf_mlir *r, sf_str name, bool has_value, sf_loc loc, void *context)
{
    (void)loc;
    sf_result *info = context;
    if (!has_value)
        return SF_OK;
    if (is_sharding(name))
        return sharding_text(r, &info->sharding);
    if (sf_str_is(name, "jax.result_info"))
        return sf_mlir_value_text(r, &info->name);
    return sf_mlir_skip_value(r);
}

/* `(%a: type {attributes} loc(...), ...)`; a declaration leaves the names out. */
static sf_status parse_parameters(sf_mlir *r, header *h)
{
    SF_TRY(sf_mlir_take(r, '('));
    if (sf_scan_take(&r->scan, ')'))
        return SF_OK;
    do {
        add_parameter(r, h);
        parameter *p = &h->parameters[h->nparameters - 1];
        p->loc = sf_mlir_here(r);
        p->name = sf_scan_sigil(&r->scan, '%');
        if (p->name.length)
            SF_TRY(sf_mlir_parameter_type(r, &p->type));
        else
            SF_TRY(sf_mlir_tensor_type(r, &p->type));
        if (sf_scan_is(&r->scan, '{'))
            SF_TRY(sf_mlir_entries(r, argument_entry, &p->info));
        SF_TRY(sf_mlir_place_at(r, &p->place));
    } while (sf_scan_take(&r->scan, ','));
    return sf_mlir_take(r, ')');
}

static sf_status parse_outcome(sf_mlir *r, header *h)
{
    const sf_type *type;
    sf_status status = sf_mlir_tensor_type(r, &type);
    if (status == SF_EUNSUPPORTED) {
        type = NULL;
        status = sf_mlir_note(r, status);
    }
    SF_TRY(status);
    add_outcome(r, h, type);
    if (sf_scan_is(&r->scan, '{'))
        return sf_mlir_entries(r, result_entry, &h->outcomes[h->noutcomes - 1].info);
    return SF_OK;
}

/* A single result in front of a body has no attributes: the bracket is the body's. */
static sf_status parse_outcomes(sf_mlir *r, header *h)
{
    if (!sf_scan_text(&r->scan, "->"))
        return SF_OK;
    if (!sf_scan_take(&r->scan, '(')) {
        const sf_type *type;
        SF_TRY(sf_mlir_tensor_type(r, &type));
        add_outcome(r, h, type);
        return SF_OK;
    }
    if (sf_scan_take(&r->scan, ')'))
        return SF_OK;
    do {
        SF_TRY(parse_outcome(r, h));
    } while (sf_scan_take(&r->scan, ','));
    return sf_mlir_take(r, ')');
}

static bool func_name_equal(const void *item, const void *key)
{
    return ((const sf_func *)item)->name == key;
}

/* Where the function of that interned name is, or goes. */
static sf_intern_slot *func_slot(sf_mlir *r, const char *name)
{
    uint64_t hash = sf_hash_bytes(0, name, strlen(name));
    return sf_intern_find(&r->functions, &r->arena, hash, func_name_equal, name);
}

const sf_func *sf_mlir_func_find(sf_mlir *r, const char *interned_name)
{
    sf_intern_slot *slot = func_slot(r, interned_name);
    if (!slot->item) { /* the slot must be filled: no function has the name of this one */
        sf_func *nothing = SF_NEW(&r->arena, sf_func);
        nothing->name = interned_name;
        slot->item = nothing;
    }
    const sf_func *func = slot->item;
    return func->block ? func : NULL;
}

static sf_status check_donations(sf_mlir *r, const header *h)
{
    for (size_t i = 0; i < h->nparameters; i++) {
        uint32_t next = h->parameters[i].info.next;
        if (next != SF_NONE && next >= h->noutcomes)
            return SF_MLIR_FAIL(r, SF_EINPUT, h->parameters[i].loc,
                                "aliases result %u of a function with %zu", next, h->noutcomes);
    }
    return SF_OK;
}

static sf_status add_func(sf_mlir *r, const header *h, sf_func **out)
{
    sf_arena *arena = &r->graph->arena;
    SF_TRY(check_donations(r, h));
    const char *name = sf_pool_string(r->pool, h->name);
    sf_intern_slot *slot = func_slot(r, name);
    if (slot->item)
        return SF_MLIR_FAIL(r, SF_EINPUT, h->loc, "@%s is defined a second time", name);
    sf_func *func = sf_module_add(r->module, h->name, h->loc);
    slot->item = func;
    func->arguments = SF_ARRAY(arena, h->nparameters, sf_argument);
    func->results = SF_ARRAY(arena, h->noutcomes, sf_result);
    for (size_t i = 0; i < h->nparameters; i++) {
        func->arguments[i] = h->parameters[i].info;
        sf_mlir_wanted wanted = {&func->arguments[i].name, h->parameters[i].place,
                                 h->parameters[i].name};
        SF_PUSH(&r->arena, r->wanted, r->nwanted, r->wanted_capacity, wanted);
    }
    for (size_t i = 0; i < h->noutcomes; i++)
        func->results[i] = h->outcomes[i].info;
    /* main wins, then a visible function, then the first one. */
    bool is_main = !h->is_private && sf_str_is(h->name, "main");
    int rank = is_main ? 3 : !h->is_private ? 2 : 1;
    if (rank > r->entry_rank) {
        r->module->entry = func;
        r->entry_rank = rank;
    }
    *out = func;
    return SF_OK;
}

/* The body, from after its opening bracket and label. */
static sf_status parse_func_body(sf_mlir *r, header *h)
{
    sf_func *func = NULL;
    SF_TRY(add_func(r, h, &func));
    const sf_type **types = SF_ARRAY(&r->arena, h->noutcomes, const sf_type *);
    for (size_t i = 0; i < h->noutcomes; i++)
        types[i] = h->outcomes[i].type;
    sf_mlir_body body = {.block = func->block, .types = types, .ntypes = (uint32_t)h->noutcomes};
    SF_TRY(sf_mlir_descend(r));
    size_t outer = sf_mlir_scope_open(r);
    for (size_t i = 0; i < h->nparameters; i++) {
        const parameter *p = &h->parameters[i];
        SF_TRY(sf_mlir_argument(r, &body, p->name, p->type, p->loc));
    }
    SF_TRY(sf_mlir_ops(r, &body));
    sf_mlir_scope_close(r, outer);
    r->depth--;
    return SF_OK;
}

static sf_status parse_pretty(sf_mlir *r, header *h)
{
    uint32_t place;
    h->is_private = sf_scan_word(&r->scan, "private") || sf_scan_word(&r->scan, "nested");
    sf_scan_word(&r->scan, "public");
    SF_TRY(sf_mlir_symbol(r, &h->name));
    SF_TRY(parse_parameters(r, h));
    SF_TRY(parse_outcomes(r, h));
    SF_TRY(sf_mlir_skip_attributes(r));
    if (sf_scan_take(&r->scan, '{')) {
        for (size_t i = 0; i < h->nparameters; i++)
            if (!h->parameters[i].name.length)
                return SF_MLIR_FAIL(r, SF_EINPUT, h->parameters[i].loc,
                                    "a parameter of a function with a body has no name");
        SF_TRY(parse_func_body(r, h));
    }
    return sf_mlir_place_at(r, &place);
}

/* `[{...}, {...}]`, one dictionary for each parameter or each result. */
static sf_status parse_attr_list(sf_mlir *r, header *h, bool of_results)
{
    SF_TRY(sf_mlir_take(r, '['));
    for (size_t i = 0; !sf_scan_is(&r->scan, ']'); i++) {
        if (of_results && i == h->noutcomes)
            add_outcome(r, h, NULL);
        if (!of_results && i == h->nparameters)
            add_parameter(r, h);
        if (of_results)
            SF_TRY(sf_mlir_entries(r, result_entry, &h->outcomes[i].info));
        else
            SF_TRY(sf_mlir_entries(r, argument_entry, &h->parameters[i].info));
        if (!sf_scan_take(&r->scan, ','))
            break;
    }
    return sf_mlir_take(r, ']');
}

/* `(types) -> types`: those of the results are kept, those of the parameters are in the block. */
static sf_status parse_signature(sf_mlir *r, header *h)
{
    if (!sf_scan_is(&r->scan, '(') || !sf_scan_balanced(&r->scan))
        return sf_mlir_expected(r, "the type of a function");
    if (!sf_scan_text(&r->scan, "->"))
        return sf_mlir_expected(r, "'->'");
    size_t first = r->ntypes;
    SF_TRY(sf_mlir_result_types(r));
    for (size_t i = 0; i < r->ntypes - first; i++) {
        if (i == h->noutcomes)
            add_outcome(r, h, NULL);
        h->outcomes[i].type = r->types[first + i];
    }
    r->ntypes = first;
    return SF_OK;
}

static sf_status func_entry(sf_mlir *r, sf_str name, bool has_value, sf_loc loc, void *context)
{
    (void)loc;
    header *h = context;
    if (!has_value)
        return SF_OK;
    if (sf_str_is(name, "sym_name"))
        return sf_mlir_string(r, &h->name);
    if (sf_str_is(name, "function_type"))
        return parse_signature(r, h);
    if (sf_str_is(name, "arg_attrs") || sf_str_is(name, "res_attrs"))
        return parse_attr_list(r, h, sf_str_is(name, "res_attrs"));
    if (sf_str_is(name, "sym_visibility")) {
        sf_str visibility;
        SF_TRY(sf_mlir_string(r, &visibility));
        h->is_private = !sf_str_is(visibility, "public");
        return SF_OK;
    }
    return sf_mlir_skip_value(r);
}

/* `^bb0(%a: type, ...):`, whose attributes have been read before. */
static sf_status parse_generic_parameters(sf_mlir *r, header *h)
{
    size_t count = 0;
    if (sf_scan_sigil(&r->scan, '^').length && sf_scan_take(&r->scan, '(')) {
        do {
            if (count == h->nparameters)
                add_parameter(r, h);
            parameter *p = &h->parameters[count++];
            p->loc = sf_mlir_here(r);
            p->name = sf_scan_sigil(&r->scan, '%');
            if (!p->name.length)
                return sf_mlir_expected(r, "an argument such as %arg0");
            SF_TRY(sf_mlir_parameter_type(r, &p->type));
            SF_TRY(sf_mlir_place_at(r, &p->place));
        } while (sf_scan_take(&r->scan, ','));
        SF_TRY(sf_mlir_take(r, ')'));
        SF_TRY(sf_mlir_take(r, ':'));
    } else {
        sf_scan_take(&r->scan, ':');
    }
    if (count != h->nparameters)
        return SF_MLIR_FAIL(r, SF_EINPUT, h->loc, "%zu attributes for %zu parameters",
                            h->nparameters, count);
    return SF_OK;
}

static sf_status parse_generic_func(sf_mlir *r, header *h)
{
    uint32_t place;
    SF_TRY(sf_mlir_take(r, '('));
    SF_TRY(sf_mlir_take(r, ')'));
    if (sf_scan_take(&r->scan, '<')) {
        SF_TRY(sf_mlir_entries(r, func_entry, h));
        SF_TRY(sf_mlir_take(r, '>'));
    }
    SF_TRY(sf_mlir_take(r, '('));
    SF_TRY(sf_mlir_take(r, '{'));
    if (!h->name.length)
        return SF_MLIR_FAIL(r, SF_EINPUT, h->loc, "the function has no sym_name");
    if (!sf_scan_take(&r->scan, '}')) { /* else it is a declaration */
        SF_TRY(parse_generic_parameters(r, h));
        SF_TRY(parse_func_body(r, h));
    }
    SF_TRY(sf_mlir_take(r, ')'));
    if (sf_scan_is(&r->scan, '{') && !sf_scan_balanced(&r->scan))
        return sf_mlir_expected(r, "attributes in {}");
    if (!sf_scan_take(&r->scan, ':') || !sf_scan_value(&r->scan))
        return sf_mlir_expected(r, "': () -> ()'");
    return sf_mlir_place_at(r, &place);
}

sf_status sf_mlir_func(sf_mlir *r, sf_loc loc, bool generic)
{
    header h = {.loc = loc};
    return generic ? parse_generic_func(r, &h) : parse_pretty(r, &h);
}
