/* Tensor types. A file has few different ones and names them many times, so a type is looked up by
 * its text. */
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "front/stablehlo/mlir_reader.h"

/* Types of StableHLO that are not supported. Each is reported once: a program that uses tokens has
 * them everywhere. */
static const struct {
    const char *text;
    const char *advice;
} unsupported[] = {
    {"complex<", "complex numbers have parts of f32 or f64"},
    {"!quant.", "dequantize the model before exporting"},
    {"quant.", "dequantize the model before exporting"},
    {"tuple<", "return several results instead of a tuple"},
    {"index", "use i32 or i64"},
};

static bool has_part(sf_str text, const char *part)
{
    return memmem(text.at, text.length, part, strlen(part)) != NULL;
}

static sf_status fail_unsupported(sf_mlir *r, sf_loc loc, sf_str text)
{
    if (has_part(text, "hlo.token"))
        return sf_mlir_end(r, sf_refuse_token(text, loc, r->diag));
    if (sf_str_starts(text, "tensor<") &&
        (has_part(text, "?") || has_part(text, "*") || has_part(text, "bounds")))
        return sf_mlir_end(r, sf_refuse_dynamic(text, loc, r->diag));
    size_t kind = 0, kinds = sizeof unsupported / sizeof *unsupported;
    while (kind < kinds && !has_part(text, unsupported[kind].text))
        kind++;
    unsigned bit = 1u << kind;
    r->quiet = r->refused & bit;
    if (r->quiet)
        return SF_EUNSUPPORTED;
    r->refused |= bit;
    SF_MLIR_FAIL(r, SF_EUNSUPPORTED, loc, "the type %.*s is not supported", SF_STR_ARGS(text));
    if (kind < kinds)
        sf_hint(r->diag, "%s", unsupported[kind].advice);
    else
        sf_hint(r->diag,
                "types are tensors of i1, i2 to i64, ui2 to ui64, bf16, f4 to f64, complex<f32> "
                "and complex<f64>");
    return SF_EUNSUPPORTED;
}

/* The inside of `tensor<...>`: sizes with an x after each, then the element type. False when it is
 * anything else. */
static bool parse_shape(sf_str text, sf_dtype *dtype, int *rank, int64_t *dims)
{
    const char *at = text.at, *end = at + text.length;
    *rank = 0;
    while (at < end && *at >= '0' && *at <= '9') {
        int64_t size = 0;
        for (; at < end && *at >= '0' && *at <= '9'; at++)
            if (!sf_mul(size, 10, &size) || !sf_add(size, *at - '0', &size))
                return false;
        if (at == end || *at++ != 'x' || *rank == SF_MAX_RANK)
            return false;
        dims[(*rank)++] = size;
    }
    return sf_dtype_find(SF_SPELL_STABLEHLO, (sf_str){at, (size_t)(end - at)}, dtype);
}

static bool looks_static(sf_str text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!sf_scan_name_char[(unsigned char)text.at[i]])
            return false;
    return true;
}

/* `text` is all of the type, `inside` the text between its brackets. */
static sf_status make_type(sf_mlir *r, sf_loc loc, sf_str text, sf_str inside, const sf_type **out)
{
    sf_dtype dtype;
    int rank;
    int64_t dims[SF_MAX_RANK];
    *out = NULL;
    if (parse_shape(inside, &dtype, &rank, dims))
        *out = sf_type_get(r->pool, dtype, rank, dims);
    else if (!looks_static(inside) || memmem(inside.at, inside.length, "index", 5))
        return fail_unsupported(r, loc, text);
    else if (rank < SF_MAX_RANK)
        return SF_MLIR_FAIL(r, SF_EINPUT, loc, "%.*s is not a type of tensors", SF_STR_ARGS(text));
    if (!*out)
        return SF_MLIR_FAIL(r, SF_EUNSUPPORTED, loc,
                            "%.*s is too large: a tensor has at most %d dimensions and 2^63 bytes",
                            SF_STR_ARGS(text), SF_MAX_RANK);
    return SF_OK;
}

static void grow_type_table(sf_mlir *r)
{
    size_t capacity = r->type_table_capacity ? r->type_table_capacity * 2 : 256;
    sf_mlir_type *table = SF_ARRAY(&r->arena, capacity, sf_mlir_type);
    for (size_t i = 0; i < r->type_table_capacity; i++) {
        if (!r->type_table[i].text.at)
            continue;
        size_t at = r->type_table[i].hash & (capacity - 1);
        while (table[at].text.at)
            at = (at + 1) & (capacity - 1);
        table[at] = r->type_table[i];
    }
    r->type_table = table;
    r->type_table_capacity = capacity;
}

/* The entry for the text; a new one has no text yet. */
static sf_mlir_type *lookup_type(sf_mlir *r, sf_str text, uint64_t hash)
{
    if (r->ntype_table * 2 >= r->type_table_capacity)
        grow_type_table(r);
    size_t mask = r->type_table_capacity - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        sf_mlir_type *entry = &r->type_table[at];
        if (!entry->text.at || (entry->hash == hash && sf_str_equal(entry->text, text)))
            return entry;
    }
}

static sf_status parse_tensor(sf_mlir *r, const sf_type **out)
{
    sf_scan start = r->scan;
    const char *first = r->scan.at += strlen("tensor");
    while (sf_scan_name_char[(unsigned char)first[1]])
        first++;
    if (*r->scan.at == '<' && first[1] == '>')
        r->scan.at = first + 2;
    else if (*r->scan.at != '<' || !sf_scan_balanced(&r->scan))
        return sf_mlir_expected(r, "a type such as tensor<2x3xf32>");
    sf_str text = {start.at, (size_t)(r->scan.at - start.at)};
    sf_str inside = {start.at + strlen("tensor<"), text.length - strlen("tensor<>")};
    uint64_t hash = sf_hash_bytes(0, inside.at, inside.length);
    sf_mlir_type *entry = lookup_type(r, text, hash);
    if (entry->text.at) {
        *out = entry->type;
        r->quiet = !entry->type;
        return entry->type ? SF_OK : SF_EUNSUPPORTED;
    }
    sf_loc loc = {r->file, start.line, (uint32_t)(start.at - start.line_start + 1)};
    sf_status status = make_type(r, loc, text, inside, out);
    *entry = (sf_mlir_type){text, hash, *out};
    r->ntype_table++;
    return status;
}

/* A type that is no tensor. It may be well-formed, so it is read as a whole before it is refused. */
static sf_status parse_other_type(sf_mlir *r)
{
    sf_loc loc = sf_mlir_here(r);
    const char *first = r->scan.at;
    bool names_type = *first == '!' || sf_scan_name_char[(unsigned char)*first];
    if (!names_type || !sf_scan_value(&r->scan))
        return sf_mlir_expected(r, "a type such as tensor<2x3xf32>");
    return fail_unsupported(r, loc, (sf_str){first, (size_t)(r->scan.at - first)});
}

sf_status sf_mlir_tensor_type(sf_mlir *r, const sf_type **out)
{
    sf_scan_skip(&r->scan);
    if (strncmp(r->scan.at, "tensor<", strlen("tensor<")) == 0)
        return parse_tensor(r, out);
    if (*r->scan.at == '!') {
        sf_scan start = r->scan;
        sf_str name = sf_scan_sigil(&r->scan, '!');
        const sf_mlir_alias *alias = sf_mlir_alias_of(r, '!', name);
        *out = alias->type;
        if (*out)
            return SF_OK;
        r->scan = start;
    }
    *out = NULL;
    return parse_other_type(r);
}

sf_status sf_mlir_type_list(sf_mlir *r)
{
    do {
        const sf_type *type;
        SF_TRY(sf_mlir_tensor_type(r, &type));
        SF_PUSH(&r->arena, r->types, r->ntypes, r->type_capacity, type);
    } while (sf_scan_take(&r->scan, ','));
    return SF_OK;
}

sf_status sf_mlir_result_types(sf_mlir *r)
{
    if (!sf_scan_take(&r->scan, '(')) {
        const sf_type *type;
        SF_TRY(sf_mlir_tensor_type(r, &type));
        SF_PUSH(&r->arena, r->types, r->ntypes, r->type_capacity, type);
        return SF_OK;
    }
    if (sf_scan_take(&r->scan, ')'))
        return SF_OK;
    SF_TRY(sf_mlir_type_list(r));
    return sf_mlir_take(r, ')');
}
