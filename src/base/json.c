/* The reader. Values whose array or object is open wait on a stack; when it closes, they move to
 * the arena in one block. So the tree has no slack, however large the arrays. */
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/number.h"

/* In bytes. */
enum { LONG_ARRAY = 4096 };

typedef struct parser {
    const char *start, *at, *end;
    const char *file;
    sf_arena *arena;
    sf_diag *diag;
    sf_json *stack;
    size_t count, capacity;
    int depth;
} parser;

static sf_loc loc_at(sf_str text, const char *file, size_t offset)
{
    sf_loc loc = {file, 1, 1};
    for (size_t i = 0; i < offset && i < text.length; i++) {
        bool line_ends = text.at[i] == '\n';
        loc.line += line_ends;
        loc.column = line_ends ? 1 : loc.column + 1;
    }
    return loc;
}

static sf_loc parser_loc(const parser *p, const char *at)
{
    sf_str text = {p->start, (size_t)(p->end - p->start)};
    return loc_at(text, p->file, (size_t)(at - p->start));
}

static sf_status fail_at(const parser *p, const char *at, const char *why)
{
    return sf_fail(p->diag, SF_EINPUT, parser_loc(p, at), "%s", why);
}

static sf_status fail_expected(const parser *p, const char *what)
{
    sf_loc loc = parser_loc(p, p->at);
    if (p->at == p->end)
        return sf_fail(p->diag, SF_EINPUT, loc, "expected %s, but the text ends here", what);
    unsigned char found = (unsigned char)*p->at;
    if (found >= 0x20 && found < 0x7f)
        return sf_fail(p->diag, SF_EINPUT, loc, "expected %s, found '%c'", what, found);
    return sf_fail(p->diag, SF_EINPUT, loc, "expected %s, found byte 0x%02x", what, found);
}

static uint32_t offset_in_text(const parser *p, const char *at)
{
    return (uint32_t)(at - p->start);
}

static bool next_is(const parser *p, char c)
{
    return p->at < p->end && *p->at == c;
}

static bool next_is_digit(const parser *p)
{
    return p->at < p->end && *p->at >= '0' && *p->at <= '9';
}

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
}

static void push_value(parser *p, sf_json value)
{
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? p->capacity * 2 : 256;
        sf_json *larger = sf_alloc(capacity * sizeof *larger);
        if (p->count)
            memcpy(larger, p->stack, p->count * sizeof *larger);
        sf_free(p->stack);
        p->stack = larger;
        p->capacity = capacity;
    }
    p->stack[p->count++] = value;
}

static sf_status parse_word(parser *p, const char *word, sf_json value, sf_json *out)
{
    sf_str rest = {p->at, (size_t)(p->end - p->at)};
    if (!sf_str_starts(rest, word))
        return fail_expected(p, "a value (null, true and false are the only words)");
    value.length = offset_in_text(p, p->at);
    p->at += strlen(word);
    *out = value;
    return SF_OK;
}

static sf_status skip_digits(parser *p, const char *what)
{
    if (!next_is_digit(p))
        return fail_expected(p, what);
    while (next_is_digit(p))
        p->at++;
    return SF_OK;
}

/* The text after the digits of an integer, if any. */
static sf_status skip_fraction(parser *p)
{
    if (next_is(p, '.')) {
        p->at++;
        SF_TRY(skip_digits(p, "a digit after the point"));
    }
    if (next_is(p, 'e') || next_is(p, 'E')) {
        p->at++;
        if (next_is(p, '-') || next_is(p, '+'))
            p->at++;
        SF_TRY(skip_digits(p, "a digit of the exponent"));
    }
    return SF_OK;
}

static sf_status parse_json_number(parser *p, sf_json *out)
{
    const char *start = p->at;
    *out = (sf_json){.kind = SF_JSON_NUMBER, .length = offset_in_text(p, start)};
    bool negative = next_is(p, '-');
    p->at += negative;
    const char *digits = p->at;
    uint64_t magnitude = 0; /* wraps for more than 19 digits */
    for (; next_is_digit(p); p->at++)
        magnitude = magnitude * 10 + (unsigned)(*p->at - '0');
    ptrdiff_t count = p->at - digits;
    if (count == 0)
        return fail_expected(p, "a digit");
    if (*digits == '0' && count > 1)
        return fail_at(p, digits, "a number does not begin with zeros");
    const char *whole = p->at;
    SF_TRY(skip_fraction(p));
    sf_str text = {start, (size_t)(p->at - start)};
    out->exact = p->at == whole && !(negative && magnitude == 0); /* -0 is no integer */
    if (out->exact && count <= 18)
        out->integer = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    else if (!out->exact || !sf_number_int(text, &out->integer)) {
        out->exact = false;
        out->number = sf_number_double(text);
        if (isinf(out->number))
            return fail_at(p, start, "the number is too large for a double");
    }
    return SF_OK;
}

/* The four hexadecimal digits of \u; false when they are not there. */
static bool read_hex(const char *at, const char *end, uint32_t *out)
{
    if (end - at < 4)
        return false;
    *out = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)at[i];
        unsigned lower = c | 0x20u;
        if (c >= '0' && c <= '9')
            *out = *out << 4 | (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            *out = *out << 4 | (lower - 'a' + 10);
        else
            return false;
    }
    return true;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xe0 | c >> 12);
        } else {
            *to++ = (char)(0xf0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (c & 0x3f));
    return to;
}

/* At "\u", inside a string that ends at `close`. */
static sf_status decode_unicode(parser *p, const char *close, char **to)
{
    const char *start = p->at;
    uint32_t c, low;
    if (!read_hex(start + 2, close, &c))
        return fail_at(p, start, "expected four hexadecimal digits after \\u");
    p->at += 6;
    if (c >= 0xd800 && c < 0xe000) {
        bool pair = c < 0xdc00 && close - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u' &&
                    read_hex(p->at + 2, close, &low) && low >= 0xdc00 && low < 0xe000;
        if (!pair)
            return fail_at(p, start, "half of a surrogate pair is no character");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p->at += 6;
    }
    *to = put_utf8(*to, c);
    return SF_OK;
}

static sf_status decode_escape(parser *p, const char *close, char **to)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char name = p->at[1]; /* there is one: the closing quote is not escaped */
    if (name == 'u')
        return decode_unicode(p, close, to);
    const char *found = name ? strchr(names, name) : NULL;
    if (!found)
        return fail_at(p, p->at, "expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
    *(*to)++ = values[found - names];
    p->at += 2;
    return SF_OK;
}

/* The quote that ends the string whose content begins at p->at, or NULL. */
static const char *find_close(const parser *p)
{
    const char *at = p->at;
    while (at < p->end && *at != '"') {
        if (*at == '\\' && ++at == p->end)
            break;
        at++;
    }
    return at < p->end ? at : NULL;
}

static sf_status decode_string(parser *p, const char *close, char **to)
{
    while (p->at < close) {
        unsigned char c = (unsigned char)*p->at;
        if (c == '\\') {
            SF_TRY(decode_escape(p, close, to));
        } else if (c < 0x20) {
            return fail_at(p, p->at, "a control character in a string must be escaped");
        } else if (c < 0x80) {
            *(*to)++ = *p->at++;
        } else {
            int length = sf_utf8_length((sf_str){p->at, (size_t)(close - p->at)});
            if (length == 0)
                return fail_at(p, p->at, "the string is not valid UTF-8");
            memcpy(*to, p->at, (size_t)length);
            *to += length;
            p->at += length;
        }
    }
    return SF_OK;
}

static sf_status parse_string(parser *p, sf_json *out)
{
    const char *start = p->at++;
    const char *close = find_close(p);
    if (!close)
        return fail_at(p, start, "the string has no closing quote");
    /* No escape is shorter than its character. */
    uint32_t offset = offset_in_text(p, start);
    char *memory = sf_arena_alloc(p->arena, sizeof offset + (size_t)(close - p->at) + 1);
    memcpy(memory, &offset, sizeof offset);
    char *string = memory + sizeof offset, *to = string;
    SF_TRY(decode_string(p, close, &to));
    p->at = close + 1;
    *out = (sf_json){.kind = SF_JSON_STRING, .string = string, .length = (uint32_t)(to - string)};
    return SF_OK;
}

static uint32_t string_offset(const sf_json *string)
{
    uint32_t offset;
    memcpy(&offset, string->string - sizeof offset, sizeof offset);
    return offset;
}

/* Objects past this size have an index after their members: a hash table of member numbers, counted
 * from 1, at most half full. */
enum { UNINDEXED = 8 };

static size_t index_capacity(size_t count)
{
    if (count <= UNINDEXED)
        return 0;
    size_t capacity = 32;
    while (capacity < 2 * count)
        capacity *= 2;
    return capacity;
}

/* The slot of the member with this key, or the empty slot for it. */
static size_t find_key_slot(const sf_json *items, const uint32_t *index, size_t capacity,
                            sf_str key)
{
    size_t at = sf_hash_bytes(1, key.at, key.length) & (capacity - 1);
    for (;; at = (at + 1) & (capacity - 1)) {
        if (index[at] == 0)
            return at;
        const sf_json *have = &items[2 * (size_t)(index[at] - 1)];
        if (sf_str_equal((sf_str){have->string, have->length}, key))
            return at;
    }
}

static const sf_json *find_among(const sf_json *items, size_t count, sf_str key)
{
    for (size_t i = 0; i < count; i++)
        if (sf_str_equal((sf_str){items[2 * i].string, items[2 * i].length}, key))
            return &items[2 * i + 1];
    return NULL;
}

/* Fills the index and looks for keys that come twice. */
static sf_status index_members(const parser *p, const sf_json *items, size_t count, uint32_t *index)
{
    size_t capacity = index_capacity(count);
    for (size_t i = 0; i < count; i++) {
        sf_str key = {items[2 * i].string, items[2 * i].length};
        uint32_t *slot = capacity ? &index[find_key_slot(items, index, capacity, key)] : NULL;
        if (slot ? *slot != 0 : find_among(items, i, key) != NULL)
            return sf_fail(p->diag, SF_EINPUT,
                           parser_loc(p, p->start + string_offset(&items[2 * i])),
                           "the key \"%.*s\" comes twice in one object", SF_STR_ARGS(key));
        if (slot)
            *slot = (uint32_t)i + 1;
    }
    return SF_OK;
}

/* Moves the values above `base` on the stack into a new array or object. */
static sf_status close_container(parser *p, size_t base, const char *start, sf_json *out)
{
    size_t items = p->count - base;
    p->count = base;
    p->depth--;
    p->at++;
    if (items == 0) {
        out->offset = offset_in_text(p, start);
        return SF_OK;
    }
    bool object = out->kind == SF_JSON_OBJECT;
    size_t index_bytes = object ? index_capacity(items / 2) * sizeof(uint32_t) : 0;
    sf_json *copy = sf_arena_alloc(p->arena, items * sizeof *copy + index_bytes);
    memcpy(copy, p->stack + base, items * sizeof *copy);
    out->items = copy;
    out->length = (uint32_t)(object ? items / 2 : items);
    return object ? index_members(p, copy, items / 2, (uint32_t *)(void *)(copy + items)) : SF_OK;
}

static sf_status parse_json_value(parser *p, sf_json *out);

static sf_status parse_key(parser *p)
{
    skip_space(p);
    if (!next_is(p, '"'))
        return fail_expected(p, "a key in quotes");
    sf_json key;
    SF_TRY(parse_string(p, &key));
    push_value(p, key);
    skip_space(p);
    if (!next_is(p, ':'))
        return fail_expected(p, "':' after the key");
    p->at++;
    return SF_OK;
}

/* The number of items of the array whose content begins at p->at, if it is long and holds no
 * string, array or object; else 0. A guess, since the text is unchecked: parsing finds errors. */
static size_t count_flat(const parser *p)
{
    const char *close = memchr(p->at, ']', (size_t)(p->end - p->at));
    if (!close || close - p->at < LONG_ARRAY)
        return 0;
    size_t count = 1;
    for (const char *at = p->at; at < close; at++) {
        if (*at == '[' || *at == '{' || *at == '"')
            return 0;
        count += *at == ',';
    }
    return count;
}

/* Such an array goes to the arena directly: on the stack it would need its memory three times. */
static sf_status parse_flat(parser *p, size_t count, sf_json *out)
{
    sf_json *items = SF_ARRAY(p->arena, count, sf_json);
    for (size_t i = 0; i < count; i++) {
        SF_TRY(parse_json_value(p, &items[i]));
        skip_space(p);
        if (!next_is(p, i + 1 < count ? ',' : ']'))
            return fail_expected(p, "',' or ']'");
        p->at++;
    }
    p->depth--;
    out->items = items;
    out->length = (uint32_t)count;
    return SF_OK;
}

/* An array or an object; `out->kind` says which. */
static sf_status parse_container(parser *p, sf_json *out)
{
    bool object = out->kind == SF_JSON_OBJECT;
    char close = object ? '}' : ']';
    const char *start = p->at;
    if (++p->depth > SF_JSON_DEPTH)
        return fail_at(p, start, "nested more than 128 deep");
    size_t base = p->count;
    p->at++;
    skip_space(p);
    if (next_is(p, close))
        return close_container(p, base, start, out);
    size_t flat = object ? 0 : count_flat(p);
    if (flat > 0)
        return parse_flat(p, flat, out);
    for (;;) {
        if (object)
            SF_TRY(parse_key(p));
        sf_json value;
        SF_TRY(parse_json_value(p, &value));
        push_value(p, value);
        skip_space(p);
        if (next_is(p, close))
            return close_container(p, base, start, out);
        if (!next_is(p, ','))
            return fail_expected(p, object ? "',' or '}'" : "',' or ']'");
        p->at++;
    }
}

static sf_status parse_json_value(parser *p, sf_json *out)
{
    skip_space(p);
    char first = p->at < p->end ? *p->at : 0;
    if (first == '-' || (first >= '0' && first <= '9'))
        return parse_json_number(p, out);
    switch (first) {
    case '"':
        return parse_string(p, out);
    case '[':
        *out = (sf_json){.kind = SF_JSON_ARRAY};
        return parse_container(p, out);
    case '{':
        *out = (sf_json){.kind = SF_JSON_OBJECT};
        return parse_container(p, out);
    case 'n':
        return parse_word(p, "null", (sf_json){.kind = SF_JSON_NULL}, out);
    case 't':
        return parse_word(p, "true", (sf_json){.kind = SF_JSON_BOOL, .truth = true}, out);
    case 'f':
        return parse_word(p, "false", (sf_json){.kind = SF_JSON_BOOL}, out);
    default:
        return fail_expected(p, "a value");
    }
}

sf_status sf_json_parse(sf_str text, const char *file, sf_arena *arena, const sf_json **out,
                        sf_diag *diag)
{
    if (text.length >= UINT32_MAX)
        return sf_fail(diag, SF_EUNSUPPORTED, (sf_loc){file, 0, 0}, "JSON of 4 GiB or more");
    if (!text.at)
        text = sf_str_of("");
    parser p = {.start = text.at, .at = text.at, .end = text.at + text.length};
    p.file = file;
    p.arena = arena;
    p.diag = diag;
    if (sf_str_starts(text, "\xef\xbb\xbf"))
        p.at += 3;
    sf_json *root = SF_NEW(arena, sf_json);
    sf_status status = parse_json_value(&p, root);
    if (status == SF_OK) {
        skip_space(&p);
        if (p.at < p.end)
            status = fail_expected(&p, "the end of the text");
    }
    sf_free(p.stack);
    if (status == SF_OK)
        *out = root;
    return status;
}

static uint64_t value_offset(const sf_json *value)
{
    for (;; value = value->items) {
        if (value->kind == SF_JSON_STRING)
            return string_offset(value);
        if (value->kind != SF_JSON_ARRAY && value->kind != SF_JSON_OBJECT)
            return value->length;
        if (value->length == 0)
            return value->offset;
    }
}

sf_loc sf_json_loc(const sf_json *value, sf_str text, const char *file)
{
    return loc_at(text, file, (size_t)value_offset(value));
}

const sf_json *sf_json_get(const sf_json *object, const char *key)
{
    if (sf_json_kind_of(object) != SF_JSON_OBJECT || object->length == 0)
        return NULL;
    sf_str wanted = sf_str_of(key);
    size_t capacity = index_capacity(object->length);
    if (capacity == 0)
        return find_among(object->items, object->length, wanted);
    const uint32_t *index =
        (const uint32_t *)(const void *)(object->items + 2 * (size_t)object->length);
    uint32_t member = index[find_key_slot(object->items, index, capacity, wanted)];
    return member ? sf_json_value_at(object, member - 1) : NULL;
}
