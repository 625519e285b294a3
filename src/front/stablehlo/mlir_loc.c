/* Locations. Only the names in them matter: "jit(step)/layer_0/attn/dot_general" has the user's
 * modules. Files, lines and columns are skipped.
 *
 * Every form is a name or a pair of places to look for one:
 *
 *     "name"(child)      the name
 *     callsite(a at b)   a, else b
 *     fused[a, b, c]     a, else (b, else c)
 *     #loc12             the location defined as #loc12, perhaps later in the text */
#include <string.h>

#include "front/stablehlo/mlir_reader.h"

static uint32_t add_place(sf_mlir *r, sf_mlir_place place)
{
    SF_PUSH(&r->arena, r->places, r->nplaces, r->place_capacity, place);
    return (uint32_t)(r->nplaces - 1);
}

static uint32_t add_pair(sf_mlir *r, uint32_t first, uint32_t second)
{
    if (!first || !second)
        return first | second;
    return add_place(r, (sf_mlir_place){NULL, first, second, SF_PLACE_OPEN});
}

static uint32_t alias_place(sf_mlir *r, sf_str name)
{
    sf_mlir_alias *alias = sf_mlir_alias_of(r, '#', name);
    if (!alias->place)
        alias->place = add_place(r, (sf_mlir_place){0});
    return alias->place;
}

static sf_status parse_place(sf_mlir *r, uint32_t *out);

static sf_status skip_brackets(sf_mlir *r, char open)
{
    if (!sf_scan_is(&r->scan, open) || !sf_scan_balanced(&r->scan))
        return sf_mlir_expected(r, "a location in brackets");
    return SF_OK;
}

/* `"file":line:column`, and perhaps ` to line:column`, from the first colon on. */
static sf_status skip_file_place(sf_mlir *r)
{
    int64_t number;
    do {
        if (!sf_scan_int(&r->scan, &number))
            return sf_mlir_expected(r, "a line or column");
    } while (sf_scan_take(&r->scan, ':'));
    if (!sf_scan_word(&r->scan, "to"))
        return SF_OK;
    sf_scan_int(&r->scan, &number);
    SF_TRY(sf_mlir_take(r, ':'));
    return sf_scan_int(&r->scan, &number) ? SF_OK : sf_mlir_expected(r, "a column");
}

static sf_status parse_name(sf_mlir *r, uint32_t *out)
{
    sf_str name;
    SF_TRY(sf_mlir_string(r, &name));
    if (sf_scan_take(&r->scan, ':'))
        return skip_file_place(r);
    if (sf_scan_is(&r->scan, '('))
        SF_TRY(skip_brackets(r, '('));
    if (name.length)
        *out = add_place(
            r, (sf_mlir_place){.path = sf_pool_name(r->pool, name), .state = SF_PLACE_DONE});
    return SF_OK;
}

static sf_status parse_callsite(sf_mlir *r, uint32_t *out)
{
    if (r->depth >= SF_MAX_DEPTH)
        return skip_brackets(r, '(');
    uint32_t callee = 0, caller = 0;
    SF_TRY(sf_mlir_take(r, '('));
    SF_TRY(parse_place(r, &callee));
    if (!sf_scan_word(&r->scan, "at"))
        return sf_mlir_expected(r, "'at'");
    SF_TRY(parse_place(r, &caller));
    *out = add_pair(r, callee, caller);
    return sf_mlir_take(r, ')');
}

static sf_status parse_fused(sf_mlir *r, uint32_t *out)
{
    if (sf_scan_is(&r->scan, '<'))
        SF_TRY(skip_brackets(r, '<'));
    if (r->depth >= SF_MAX_DEPTH)
        return skip_brackets(r, '[');
    SF_TRY(sf_mlir_take(r, '['));
    uint32_t last = 0; /* the pair whose second half the next place goes to */
    while (!sf_scan_is(&r->scan, ']')) {
        uint32_t place = 0;
        SF_TRY(parse_place(r, &place));
        if (place) {
            uint32_t pair = add_place(r, (sf_mlir_place){.first = place});
            if (last)
                r->places[last].second = pair;
            else
                *out = pair;
            last = pair;
        }
        if (!sf_scan_take(&r->scan, ','))
            break;
    }
    return sf_mlir_take(r, ']');
}

static sf_status parse_place(sf_mlir *r, uint32_t *out)
{
    sf_status status;
    *out = 0;
    r->depth++;
    if (sf_scan_is(&r->scan, '#')) {
        sf_str name = sf_scan_sigil(&r->scan, '#');
        *out = name.length ? alias_place(r, name) : 0;
        status = name.length ? SF_OK : sf_mlir_expected(r, "a location");
    } else if (sf_scan_is(&r->scan, '"')) {
        status = parse_name(r, out);
    } else if (sf_scan_word(&r->scan, "unknown")) {
        status = SF_OK;
    } else if (sf_scan_word(&r->scan, "callsite")) {
        status = parse_callsite(r, out);
    } else if (sf_scan_word(&r->scan, "fused")) {
        status = parse_fused(r, out);
    } else {
        status = sf_mlir_expected(r, "a location");
    }
    r->depth--;
    return status;
}

void sf_mlir_define_place(sf_mlir *r, sf_str name, uint32_t place)
{
    uint32_t alias = alias_place(r, name);
    r->places[alias].second = place;
}

sf_status sf_mlir_place_at(sf_mlir *r, uint32_t *out)
{
    *out = 0;
    if (!sf_scan_word(&r->scan, "loc"))
        return SF_OK;
    SF_TRY(sf_mlir_take(r, '('));
    SF_TRY(parse_place(r, out));
    return sf_mlir_take(r, ')');
}

/* The search goes down the first halves by recursion, and along the second halves by a loop, because
 * a stack of callers may be long. A busy place is one that led here: it has no name to offer, and one
 * that leads only to itself stays busy for good. */
static const char *resolve_place(sf_mlir *r, uint32_t place, int depth)
{
    const char *path = NULL;
    uint32_t end = place;
    while (end && !path) {
        sf_mlir_place *here = &r->places[end];
        if (here->state != SF_PLACE_OPEN || depth >= SF_MAX_DEPTH) {
            path = here->path;
            break;
        }
        here->state = SF_PLACE_BUSY;
        path = resolve_place(r, here->first, depth + 1);
        end = here->second;
    }
    for (uint32_t at = place; at != end; at = r->places[at].second) {
        r->places[at].path = path;
        r->places[at].state = SF_PLACE_DONE;
    }
    return path;
}

const char *sf_mlir_path(sf_mlir *r, uint32_t place)
{
    return resolve_place(r, place, 0);
}
