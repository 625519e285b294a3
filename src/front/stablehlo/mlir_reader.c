/* Common to all files of the reader: messages, strings, aliases. */
#include "front/stablehlo/mlir_reader.h"

#include <string.h>

#include "base/hash.h"
#include "base/number.h"

sf_loc sf_mlir_here(sf_mlir *r)
{
    sf_scan_skip(&r->scan);
    return (sf_loc){r->file, r->scan.line, (uint32_t)(r->scan.at - r->scan.line_start + 1)};
}

sf_status sf_mlir_expected(sf_mlir *r, const char *what)
{
    sf_loc loc = sf_mlir_here(r);
    sf_str token = sf_scan_token(&r->scan);
    if (!token.length && r->truncated)
        return SF_EINPUT; /* said before, but it counts: each took a look at all of the text */
    r->truncated = r->truncated || !token.length;
    if (!token.length)
        return SF_MLIR_FAIL(r, SF_EINPUT, loc, "expected %s, found the end of the file", what);
    unsigned char first = (unsigned char)*token.at;
    if (first < ' ' || (first >= 0x80 && !sf_utf8_length(token)))
        return SF_MLIR_FAIL(r, SF_EINPUT, loc, "expected %s, found the byte 0x%02x", what, first);
    return SF_MLIR_FAIL(r, SF_EINPUT, loc, "expected %s, found '%.*s'", what, SF_STR_ARGS(token));
}

sf_status sf_mlir_note(sf_mlir *r, sf_status status)
{
    r->errors += !r->quiet;
    r->quiet = false;
    if (r->status == SF_OK)
        r->status = status;
    return r->errors >= SF_MLIR_MAX_ERRORS ? r->status : SF_OK;
}

sf_status sf_mlir_end(sf_mlir *r, sf_status status)
{
    r->errors += status == SF_OK ? 0 : SF_MLIR_MAX_ERRORS;
    return status;
}

sf_status sf_mlir_recover(sf_mlir *r, sf_scan start, sf_status status)
{
    SF_TRY(sf_mlir_note(r, status));
    r->scan = start;
    sf_scan_recover(&r->scan);
    return SF_OK;
}

sf_status sf_mlir_descend(sf_mlir *r)
{
    if (r->depth >= SF_MAX_DEPTH)
        return SF_MLIR_FAIL(r, SF_EUNSUPPORTED, sf_mlir_here(r), "nested more than %d levels deep",
                            SF_MAX_DEPTH);
    r->depth++;
    return SF_OK;
}

/* The character of an escape sequence, and the place after it. */
static const char *unescape_sequence(const char *at, char *out)
{
    static const char letters[] = "nt\\\"", meanings[] = "\n\t\\\"";
    const char *letter = strchr(letters, at[1]);
    if (letter && at[1]) {
        *out = meanings[letter - letters];
        return at + 2;
    }
    int high = sf_hex_digit(at[1]), low = high < 0 ? -1 : sf_hex_digit(at[2]);
    if (low < 0) {
        *out = at[1];
        return at + 2;
    }
    *out = (char)(high << 4 | low);
    return at + 3;
}

sf_status sf_mlir_string(sf_mlir *r, sf_str *out)
{
    if (!sf_scan_quoted(&r->scan, out))
        return sf_mlir_expected(r, "a string that ends on its line");
    if (!memchr(out->at, '\\', out->length))
        return SF_OK;
    char *text = sf_arena_alloc(&r->arena, out->length + 1);
    size_t length = 0;
    for (const char *at = out->at, *end = at + out->length; at < end;) {
        if (*at == '\\')
            at = unescape_sequence(at, &text[length++]);
        else
            text[length++] = *at++;
    }
    *out = (sf_str){text, length};
    return SF_OK;
}

sf_status sf_mlir_symbol(sf_mlir *r, sf_str *out)
{
    if (sf_scan_is(&r->scan, '@') && r->scan.at[1] == '"') {
        r->scan.at++;
        return sf_mlir_string(r, out);
    }
    *out = sf_scan_sigil(&r->scan, '@');
    return out->length ? SF_OK : sf_mlir_expected(r, "a name such as @main");
}

static bool alias_equal(const void *item, const void *key)
{
    return sf_str_equal(((const sf_mlir_alias *)item)->name, *(const sf_str *)key);
}

sf_mlir_alias *sf_mlir_alias_of(sf_mlir *r, char sigil, sf_str name)
{
    sf_interner *aliases = sigil == '#' ? &r->aliases : &r->type_aliases;
    uint64_t hash = sf_hash_bytes(0, name.at, name.length);
    sf_intern_slot *slot = sf_intern_find(aliases, &r->arena, hash, alias_equal, &name);
    if (!slot->item) {
        sf_mlir_alias *alias = SF_NEW(&r->arena, sf_mlir_alias);
        alias->name = name;
        slot->item = alias;
    }
    /* The table's items were made here, so they may be written. */
    return (sf_mlir_alias *)slot->item;
}
