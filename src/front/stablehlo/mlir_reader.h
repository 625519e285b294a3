/* The internals of the StableHLO reader, which its files share.
 *
 *     mlir_parse.c   module                     mlir_func.c     functions
 *     mlir_op.c      ops and their types        mlir_region.c   blocks, returns, recovery after an
 *                    error
 *     mlir_pretty.c  pretty forms of ops        mlir_attr.c     attribute values, after the schema
 *                    of the op
 *     mlir_constant.c  dense literals           mlir_types.c    tensor types
 *     mlir_names.c   SSA names and their scopes mlir_loc.c      locations, and the name paths in
 *                    them
 *
 * The text is read once, front to back, and nodes are built on the way. The definition of an op
 * determines its attributes and regions; only pretty forms depend on the op.
 *
 * Errors: a function that fails has reported why, unless `quiet` is set. The loop over the ops of a
 * block then skips to the next op. The results of the failed op are *poison* (SF_NONE): an op that
 * uses poison is read but not built, and its results are poison too, so one mistake gives one
 * message. */
#ifndef SF_FRONT_STABLEHLO_MLIR_READER_H
#define SF_FRONT_STABLEHLO_MLIR_READER_H

#include "base/intern.h"
#include "front/refused_ops.h"
#include "front/stablehlo/mlir_scan.h"
#include "front/text_module.h"
#include "ir/opdef.h"

/* A name in scope: `count` values from `first` on; first is SF_NONE for poison. */
typedef struct sf_mlir_name {
    const char *at;
    uint32_t length, hash;
    uint32_t older; /* index + 1 of the next name in the same bucket */
    sf_value first;
    uint32_t count;
} sf_mlir_name;

/* A result name in front of an op: `%at:count`. */
typedef struct sf_mlir_result {
    sf_str name;
    uint32_t count;
    sf_loc loc;
} sf_mlir_result;

/* A location: a name, or the pair of locations to search for it, first in one and then in the
 * other. An alias is a pair whose second half is filled when its definition comes. */
typedef struct sf_mlir_place {
    const char *path; /* interned, or NULL */
    uint32_t first, second;
    enum { SF_PLACE_OPEN, SF_PLACE_BUSY, SF_PLACE_DONE } state;
} sf_mlir_place;

/* An argument whose name is known once all locations are. */
typedef struct sf_mlir_wanted {
    const char **name;
    uint32_t place;
    sf_str ssa; /* its name in the text, without the % */
} sf_mlir_wanted;

/* The text of a tensor type and its type. */
typedef struct sf_mlir_type {
    sf_str text;
    uint64_t hash;
    const sf_type *type; /* NULL: not supported, and that has been said */
} sf_mlir_type;

/* A definition `#name = ...` or `!name = ...`, or a location alias that may be defined later. */
typedef struct sf_mlir_alias {
    sf_str name;
    sf_scan value;       /* of an attribute; `at` is NULL where that is not defined */
    size_t length;       /* of its text */
    const sf_type *type; /* of a type alias */
    uint32_t place;      /* of a location, 0 where it is none */
} sf_mlir_alias;

typedef struct sf_mlir {
    sf_scan scan;
    const char *file;
    sf_module *module;
    sf_graph *graph;
    sf_pool *pool;
    sf_diag *diag;
    sf_arena arena; /* of everything below; freed when the text is read */
    int depth;
    int errors;
    sf_status status; /* of the first error */
    bool quiet;       /* the newest failure repeats one that was reported before */
    unsigned refused; /* kinds of types that were reported, a bit each */
    bool truncated;   /* that the text ends too early was reported */

    sf_mlir_name *names;
    size_t nnames, name_capacity, nbuckets;
    uint32_t *buckets; /* index + 1 of the newest name */
    size_t scope;      /* the first name of the innermost region */

    /* Stacks: an op's part begins where the op found their top, and nested ops are above it. */
    sf_value *operands;
    size_t noperands, operand_capacity;
    sf_value *inits;
    size_t ninits, init_capacity;
    const sf_type **types;
    size_t ntypes, type_capacity;
    sf_block **regions;
    size_t nregions, region_capacity;
    sf_mlir_result *results;
    size_t nresults, result_capacity;
    int64_t *ints;
    size_t nints, int_capacity;

    sf_mlir_type *type_table;
    size_t ntype_table, type_table_capacity;
    sf_interner aliases, type_aliases, functions;
    struct sf_mlir_op_cache *op_cache;
    int entry_rank; /* how good the entry is that was found so far */

    sf_mlir_place *places; /* the first one is "unknown" */
    size_t nplaces, place_capacity;
    uint32_t *node_places; /* by node id */
    size_t nnode_places, node_place_capacity;
    sf_mlir_wanted *wanted;
    size_t nwanted, wanted_capacity;
} sf_mlir;

enum { SF_MLIR_MAX_ERRORS = 20, SF_MLIR_MAX_ATTRS = 48, SF_MLIR_MAX_LIST = 1 << 16 };

/* The place of the reader, at the next token. */
sf_loc sf_mlir_here(sf_mlir *r);

/* "expected WHAT, found TOKEN", at the next token. */
sf_status sf_mlir_expected(sf_mlir *r, const char *what);

#define SF_MLIR_FAIL(r, status, loc, ...) sf_fail((r)->diag, (status), (loc), __VA_ARGS__)

static inline sf_status sf_mlir_take(sf_mlir *r, char c)
{
    if (sf_scan_take(&r->scan, c))
        return SF_OK;
    char what[] = {'\'', c, '\'', 0};
    return sf_mlir_expected(r, what);
}

/* Counts an error that was reported. Fails when there were too many. */
sf_status sf_mlir_note(sf_mlir *r, sf_status status);

/* After this error nothing more is read. SF_OK passes. */
sf_status sf_mlir_end(sf_mlir *r, sf_status status);

/* Does that, and skips from `start`, where the op with the error began, to the next one. */
sf_status sf_mlir_recover(sf_mlir *r, sf_scan start, sf_status status);

/* Goes one level down; fails past SF_MAX_DEPTH. Every success is paired with r->depth--. */
sf_status sf_mlir_descend(sf_mlir *r);

/* A string with its escapes resolved: in the text itself, or in the arena. */
sf_status sf_mlir_string(sf_mlir *r, sf_str *out);

/* A symbol @name or @"name", without the @. */
sf_status sf_mlir_symbol(sf_mlir *r, sf_str *out);

/* The alias of that name, which is made when it is new; it is then an alias of nothing. `sigil` is #
 * or !. */
sf_mlir_alias *sf_mlir_alias_of(sf_mlir *r, char sigil, sf_str name);

/* mlir_types.c: a tensor type. Fails quietly for the second time the same type is not supported. */
sf_status sf_mlir_tensor_type(sf_mlir *r, const sf_type **out);

/* Types with commas between them, pushed on r->types. */
sf_status sf_mlir_type_list(sf_mlir *r);

/* `-> type` has been taken up to the arrow: a type, or types in parentheses, pushed on r->types. */
sf_status sf_mlir_result_types(sf_mlir *r);

/* mlir_constant.c: `dense<...> : type`, with `dense` next. */
sf_status sf_mlir_dense(sf_mlir *r, const sf_attr **out);

/* `0.001`, as a scalar of f32. */
sf_status sf_mlir_real(sf_mlir *r, const sf_attr **out);

/* mlir_attr.c */

/* The slot of the definition for a key of the pretty form, or for a name of the generic form that is
 * not inside of a group; -1 where there is none. */
int sf_mlir_slot(const sf_opdef *def, sf_str key);

/* A value for the slot, which is NULL if it equals the default. In a dictionary the value may have
 * a type after it, in a pretty form the colon there belongs to the op. */
sf_status sf_mlir_attr(sf_mlir *r, const sf_attrdef *slot, bool in_dictionary, const sf_attr **out);

/* A list of integers or booleans, nested ones in a row: `[[1, 2], [3, 4]]`. */
sf_status sf_mlir_int_list(sf_mlir *r, const sf_attr **out);

/* `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, into the slots of the definition. */
sf_status sf_mlir_conv_dims(sf_mlir *r, const sf_opdef *def, const sf_attr **attrs);

/* The fields of a struct attribute up to its '>', which is taken, into the slots of the group. */
sf_status sf_mlir_group(sf_mlir *r, const sf_opdef *def, const char *group, const sf_attr **attrs);

/* A dictionary `{name = value, ...}` with the attributes of an op. */
sf_status sf_mlir_dictionary(sf_mlir *r, const sf_opdef *def, const sf_attr **attrs);

/* Calls `entry` for each `name [= value]` of a dictionary; it takes the value, `has_value` says
 * whether there is one. */
typedef sf_status sf_mlir_entry(sf_mlir *r, sf_str name, bool has_value, sf_loc loc, void *context);
sf_status sf_mlir_entries(sf_mlir *r, sf_mlir_entry *entry, void *context);

/* Takes an attribute value that nobody needs. */
sf_status sf_mlir_skip_value(sf_mlir *r);

/* `attributes {...}` of a function or module, if it is there; nobody needs it. */
sf_status sf_mlir_skip_attributes(sf_mlir *r);

/* The bytes of an attribute value verbatim; of a string, its content. */
sf_status sf_mlir_value_bytes(sf_mlir *r, sf_str *out);

/* The same as a name, interned. */
sf_status sf_mlir_value_text(sf_mlir *r, const char **out);

/* mlir_loc.c */

/* `loc(...)` where there is one; *out is 0 where not. */
sf_status sf_mlir_place_at(sf_mlir *r, uint32_t *out);

/* Says that #name is that place. */
void sf_mlir_define_place(sf_mlir *r, sf_str name, uint32_t place);

/* The name path of a place, or NULL. All aliases are defined by now. */
const char *sf_mlir_path(sf_mlir *r, uint32_t place);

/* mlir_names.c */

/* Opens a scope of names and returns the argument for closing it. */
size_t sf_mlir_scope_open(sf_mlir *r);
void sf_mlir_scope_close(sf_mlir *r, size_t outer);

sf_status sf_mlir_define(sf_mlir *r, sf_str name, sf_value first, uint32_t count, sf_loc loc);

/* Defines the name as poison, unless the scope has it already. */
void sf_mlir_poison(sf_mlir *r, sf_str name);

/* `%name` or `%name#1`; *out is SF_NONE for poison. */
sf_status sf_mlir_use(sf_mlir *r, sf_value *out);

/* mlir_op_parts.c */

/* An op on the way from the text to a node. */
typedef struct sf_mlir_op {
    const sf_opdef *def;
    sf_loc loc;
    size_t operands, types, regions; /* where its part of the stacks begins */
    bool poisoned;                   /* not to be built */
    bool is_if;                      /* reads as an `if`, becomes a `case` */
    const sf_attr *attrs[SF_MLIR_MAX_ATTRS];
} sf_mlir_op;

/* The definition of an op by its full name; reports an unknown one. */
sf_status sf_mlir_find_op(sf_mlir *r, sf_str name, sf_loc loc, const sf_opdef **out);

/* The names in front of an op, `%0:2 =`, pushed on r->results; there may be none. */
sf_status sf_mlir_result_names(sf_mlir *r);

/* Reads an operand and adds it to the op. */
sf_status sf_mlir_operand(sf_mlir *r, sf_mlir_op *op);

/* `: types` of an op: checks the operands against them and leaves the types of the results on
 * r->types. */
sf_status sf_mlir_op_types(sf_mlir *r, sf_mlir_op *op);

/* Builds the op unless it is poisoned; *out is then NULL. */
sf_status sf_mlir_build(sf_mlir *r, sf_block *block, sf_mlir_op *op, sf_node **out);

/* mlir_region.c */

/* A block that is being read. */
typedef struct sf_mlir_body {
    sf_block *block;
    const sf_type *const *types; /* that it must return, NULL for any; one that is not supported is
                                    NULL */
    uint32_t ntypes;
    bool bad; /* there were errors in it, or it returns poison */
    bool returned;
} sf_mlir_body;

/* Adds an argument to the block and defines its name; poison where the type is NULL. */
sf_status sf_mlir_argument(sf_mlir *r, sf_mlir_body *body, sf_str name, const sf_type *type,
                           sf_loc loc);

/* `name: type loc(...)` in the parameters of a block or function, from the colon on. The type is NULL
 * where it is not supported, which has been noted. */
sf_status sf_mlir_parameter_type(sf_mlir *r, const sf_type **type);

/* The ops of a block up to the bracket that ends it, which is taken. */
sf_status sf_mlir_ops(sf_mlir *r, sf_mlir_body *body);

/* Adds a region to the op. */
void sf_mlir_region(sf_mlir *r, sf_mlir_op *op, const sf_mlir_body *body);

/* `{ ^bb0(%a: type, ...): ops }`. */
sf_status sf_mlir_generic_region(sf_mlir *r, sf_mlir_op *op);

/* mlir_op.c. The text after the name of an op: reads it, builds it, and defines the results whose
 * names are on r->results from `first_result` on. */
sf_status sf_mlir_parse_op(sf_mlir *r, sf_block *block, sf_str name, sf_loc loc, bool generic,
                           size_t first_result);

/* mlir_func.c: the text after `func.func` or `"func.func"`. */
sf_status sf_mlir_func(sf_mlir *r, sf_loc loc, bool generic);

/* The function of that name, or NULL. */
const sf_func *sf_mlir_func_find(sf_mlir *r, const char *interned_name);

/* mlir_pretty.c: the text after the name of the op, including types. */
sf_status sf_mlir_pretty(sf_mlir *r, sf_mlir_op *op);

#endif
