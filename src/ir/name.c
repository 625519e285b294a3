#include "ir/name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/intern.h"
#include "ir/opdef.h"

static bool is_part(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || (c & 0x80);
}

/* HLO replaces each character that names cannot have by an underscore, and makes names differ by a
 * number after a point. */
static bool is_hlo_spelling(sf_str name)
{
    bool doubled = false;
    for (size_t i = 0; i < name.length; i++) {
        if (!is_part(name.at[i]) && name.at[i] != '.')
            return false;
        doubled = doubled || (i > 0 && name.at[i] == '_' && name.at[i - 1] == '_');
    }
    return doubled;
}

sf_str sf_name_without_number(sf_str name)
{
    size_t length = name.length;
    while (length > 0 && isdigit((unsigned char)name.at[length - 1]))
        length--;
    if (length > 1 && length < name.length && name.at[length - 1] == '.')
        name.length = length - 1;
    return name;
}

static size_t underscore_count(sf_str name, size_t at)
{
    size_t length = 0;
    while (at + length < name.length && name.at[at + length] == '_')
        length++;
    return length;
}

/* Whether the name of the argument is followed by a number in brackets: "opt[0].mu" is
 * opt_0__mu. */
static bool is_index(sf_str name, size_t at)
{
    size_t end = at + 1;
    while (end < name.length && isdigit((unsigned char)name.at[end]))
        end++;
    return end > at + 1 && underscore_count(name, end) >= 2;
}

/* The length of the separator at `at`; 0 when a part goes on there. `first`: no other came before. */
static size_t separator_length(sf_str name, size_t at, bool hlo, bool first)
{
    if (!is_part(name.at[at]))
        return 1;
    size_t length = hlo ? underscore_count(name, at) : 0;
    bool divides =
        length >= 2 || at + length == name.length || (length == 1 && first && is_index(name, at));
    return divides ? length : 0;
}

const char *sf_clean_name(sf_str name, sf_arena *arena)
{
    bool hlo = is_hlo_spelling(name);
    if (hlo)
        name = sf_name_without_number(name);
    char *out = sf_arena_alloc(arena, name.length + 1);
    size_t length = 0;
    bool first = true;
    for (size_t at = 0; at < name.length;) {
        size_t skip = separator_length(name, at, hlo, first);
        first = first && skip == 0;
        if (skip == 0)
            out[length++] = name.at[at++];
        else if (length > 0 && out[length - 1] != '/')
            out[length++] = '/';
        at += skip;
    }
    if (length > 0 && out[length - 1] == '/')
        length--;
    out[length] = 0;
    char *slash = strchr(out, '/');
    size_t head = slash ? (size_t)(slash - out) : 0;
    if (slash && strncmp(out, slash + 1, head) == 0 &&
        (slash[1 + head] == '/' || slash[1 + head] == 0))
        return slash + 1;
    return out;
}

const char *sf_name_key(sf_str name, sf_arena *arena)
{
    char *out = sf_arena_alloc(arena, name.length + 1);
    size_t length = 0;
    for (size_t i = 0; i < name.length; i++) {
        char c = name.at[i];
        if (isalnum((unsigned char)c) || (c & 0x80))
            out[length++] = c;
        else if (length > 0 && out[length - 1] != '_')
            out[length++] = '_';
    }
    while (length > 0 && out[length - 1] == '_')
        length--;
    out[length] = 0;
    return out;
}

static bool same_name(const void *item, const void *key)
{
    return strcmp(item, key) == 0;
}

/* Takes the name if nobody has it yet. */
static bool take_name(sf_interner *taken, sf_arena *arena, const char *name)
{
    uint64_t hash = sf_hash_bytes(0, name, strlen(name));
    sf_intern_slot *slot = sf_intern_find(taken, arena, hash, same_name, name);
    if (slot->item)
        return false;
    slot->item = name;
    slot->hash = hash;
    return true;
}

const char **sf_clean_names(const sf_graph *graph, sf_arena *arena)
{
    uint32_t count = graph->top->narguments;
    const char **names = SF_ARRAY(arena, count, const char *);
    sf_interner taken = {0};
    for (uint32_t i = 0; i < count; i++) {
        const char *clean = sf_clean_name(sf_str_of(graph->arguments[i].name), arena);
        names[i] = *clean ? clean : "argument";
        size_t room = strlen(names[i]) + 32;
        /* '~' is not in clean names, so this ends after one iteration. */
        while (!take_name(&taken, arena, names[i])) {
            char *other = sf_arena_alloc(arena, room);
            snprintf(other, room, "%s~%u", names[i], i);
            names[i] = other;
        }
    }
    return names;
}

bool sf_name_ends(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    if (tail == 0 || tail > length || strcmp(name + length - tail, ending) != 0)
        return false;
    return tail == length || name[length - tail - 1] == '/';
}

const char *sf_name_last(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

bool sf_argument_is_kept(const sf_argument *argument)
{
    return argument->next != SF_NONE || argument->role == SF_ROLE_PARAM ||
           argument->role == SF_ROLE_STATE;
}

/* Star and question mark, by going back to the last star. `within`: parts of the text may be left. */
static bool pattern_matches(const char *pattern, const char *text, bool within)
{
    const char *star = NULL, *back = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            back = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (within && *pattern == 0 && *text == '/') {
            return true;
        } else if (star) {
            pattern = star + 1;
            text = ++back;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}

/* From the start of the name on, or from that of any of its parts. */
static bool matches_parts(const char *pattern, const char *name, bool within)
{
    if (*pattern == '/')
        return pattern_matches(pattern + 1, name, within);
    for (const char *at = name; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (pattern_matches(pattern, at, within))
            return true;
    }
    return false;
}

bool sf_name_matches(const char *pattern, const char *name)
{
    return matches_parts(pattern, name, false);
}

bool sf_name_is_in(const char *pattern, const char *name)
{
    return *name && matches_parts(pattern, name, true);
}

const char *sf_value_name(const sf_graph *graph, sf_value value, sf_buf *buf)
{
    const sf_node *maker = sf_maker(graph, value);
    if (maker)
        sf_buf_printf(buf, "%s%s%s", maker->scope->path, *maker->scope->path ? "/" : "",
                      maker->def->name);
    else
        sf_buf_puts(buf, graph->arguments[graph->values[value].index].name);
    return buf->text;
}
