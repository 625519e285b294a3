/* The header of a module, and the places of its computations. */
#include "base/hash.h"
#include "front/hlo/hlo_reader.h"

/* The key of the table is the name that a computation begins with. */
static bool computation_equal(const void *item, const void *key)
{
    return sf_str_equal(((const sf_hlo_computation *)item)->name, *(const sf_str *)key);
}

static sf_intern_slot *slot_of_computation(sf_hlo_reader *reader, sf_str name)
{
    uint64_t hash = sf_hash_bytes(0, name.at, name.length);
    return sf_intern_find(&reader->by_name, &reader->arena, hash, computation_equal, &name);
}

sf_hlo_computation *sf_hlo_find_computation(sf_hlo_reader *reader, sf_str name)
{
    sf_intern_slot *slot = slot_of_computation(reader, name);
    sf_hlo_computation *computation = (sf_hlo_computation *)(uintptr_t)slot->item;
    if (!computation) {
        computation = SF_NEW(&reader->arena, sf_hlo_computation);
        *computation = (sf_hlo_computation){.name = name, .state = SF_HLO_MISSING};
        slot->item = computation;
    }
    return computation;
}

/* {0,1}: where in a tuple. */
static sf_status read_tuple_path(sf_hlo_reader *reader, sf_hlo_scan *scan, sf_hlo_path *out)
{
    out->count = 0;
    SF_TRY(sf_hlo_expect(scan, '{', reader->diag));
    if (sf_hlo_accept(scan, '}'))
        return SF_OK;
    do {
        if (out->count == SF_MAX_DEPTH)
            return sf_fail(reader->diag, SF_EUNSUPPORTED, sf_hlo_here(scan),
                           "a path into a tuple is more than %d long", SF_MAX_DEPTH);
        if (!sf_hlo_number(scan, &out->at[out->count++]))
            return sf_hlo_expected(scan, "an index", reader->diag);
    } while (sf_hlo_accept(scan, ','));
    return sf_hlo_expect(scan, '}', reader->diag);
}

/* {0}: (18, {}, may-alias) */
static sf_status read_alias(sf_hlo_reader *reader, sf_hlo_scan *scan)
{
    sf_hlo_alias alias = {.loc = sf_hlo_here(scan)};
    SF_TRY(read_tuple_path(reader, scan, &alias.from));
    SF_TRY(sf_hlo_expect(scan, ':', reader->diag));
    SF_TRY(sf_hlo_expect(scan, '(', reader->diag));
    if (!sf_hlo_number(scan, &alias.parameter))
        return sf_hlo_expected(scan, "the number of a parameter", reader->diag);
    SF_TRY(sf_hlo_expect(scan, ',', reader->diag));
    SF_TRY(read_tuple_path(reader, scan, &alias.to));
    if (sf_hlo_accept(scan, ','))
        sf_hlo_word(scan);
    SF_TRY(sf_hlo_expect(scan, ')', reader->diag));
    SF_PUSH(&reader->arena, reader->aliases, reader->naliases, reader->alias_capacity, alias);
    return SF_OK;
}

static sf_status read_aliases(sf_hlo_reader *reader, sf_hlo_scan *scan)
{
    SF_TRY(sf_hlo_expect(scan, '{', reader->diag));
    if (sf_hlo_accept(scan, '}'))
        return SF_OK;
    do
        SF_TRY(read_alias(reader, scan));
    while (sf_hlo_accept(scan, ','));
    return sf_hlo_expect(scan, '}', reader->diag);
}

static sf_status read_header(sf_hlo_reader *reader, sf_hlo_scan *scan)
{
    sf_str name = sf_hlo_name(scan);
    if (name.length == 0)
        return sf_hlo_expected(scan, "the name of the module", reader->diag);
    reader->module->graph->name = sf_pool_name(reader->module->graph->pool, name);
    while (sf_hlo_accept(scan, ',')) {
        sf_str key = sf_hlo_word(scan);
        if (key.length == 0)
            return sf_hlo_expected(scan, "an attribute of the module", reader->diag);
        if (!sf_hlo_accept(scan, '='))
            continue;
        if (sf_str_is(key, "input_output_alias"))
            SF_TRY(read_aliases(reader, scan));
        else
            sf_hlo_balanced(scan);
    }
    return SF_OK;
}

/* From an opening bracket to after its closing one. A brace in the first column closes the body of
 * a computation whatever is open, and a string ends with its line: so one mistake does not swallow
 * the remaining text. */
static bool skip_group(sf_hlo_scan *scan)
{
    static const bool stops[256] = {
        ['\n'] = true, ['"'] = true, ['/'] = true, ['{'] = true, ['}'] = true,
        ['('] = true,  [')'] = true, ['['] = true, [']'] = true,
    };
    size_t depth = 0;
    sf_str ignored;
    bool is_brace = *scan->at == '{';
    while (scan->at < scan->end) {
        char c = *scan->at;
        if (!stops[(unsigned char)c]) {
            scan->at++;
        } else if (c == '\n') {
            sf_hlo_next_line(scan);
        } else if (c == '"') {
            if (!sf_hlo_string(scan, &ignored))
                scan->at++;
        } else if (c == '/') {
            const char *before = scan->at;
            sf_hlo_skip_space(scan);
            scan->at += scan->at == before;
        } else {
            bool is_last = is_brace && c == '}' && scan->at == scan->line_start;
            if (!is_brace || c == '{' || c == '}') {
                bool opens = c == '{' || c == '(' || c == '[';
                depth = opens ? depth + 1 : depth - 1;
            }
            scan->at++;
            if (depth == 0 || is_last)
                return true;
        }
    }
    return false;
}

/* (p: f32[2]) -> f32[2]: the body says the same. */
static sf_status skip_signature(sf_hlo_reader *reader, sf_hlo_scan *scan)
{
    if (sf_hlo_peek(scan) != '(')
        return SF_OK;
    if (!skip_group(scan))
        return sf_hlo_expected(scan, "')'", reader->diag);
    sf_hlo_space(scan);
    if (scan->end - scan->at < 2 || scan->at[0] != '-' || scan->at[1] != '>')
        return sf_hlo_expected(scan, "'->'", reader->diag);
    scan->at += 2;
    if (sf_hlo_peek(scan) == '(')
        return skip_group(scan) ? SF_OK : sf_hlo_expected(scan, "')'", reader->diag);
    sf_hlo_word(scan);
    if (sf_hlo_peek(scan) != '[' || !skip_group(scan))
        return sf_hlo_expected(scan, "the type of the result", reader->diag);
    if (*scan->at == '{' && !skip_group(scan))
        return sf_hlo_expected(scan, "'}'", reader->diag);
    return SF_OK;
}

static sf_status add_computation(sf_hlo_reader *reader, sf_str name, sf_loc loc, bool is_entry,
                                 const sf_hlo_scan *body)
{
    sf_intern_slot *slot = slot_of_computation(reader, name);
    const sf_hlo_computation *older = slot->item;
    if (older)
        return sf_fail(reader->diag, SF_EINPUT, loc,
                       "the computation %.*s is defined twice, first in line %u", SF_STR_ARGS(name),
                       older->loc.line);
    sf_hlo_computation *computation = SF_NEW(&reader->arena, sf_hlo_computation);
    *computation =
        (sf_hlo_computation){.name = name, .loc = loc, .is_entry = is_entry, .body = *body};
    slot->item = computation;
    SF_PUSH(&reader->arena, reader->computations, reader->ncomputations,
            reader->computation_capacity, computation);
    return SF_OK;
}

/* A line of the tables that new dumps have in front: FileNames, 1 "step.py", and so on. */
static bool skip_table_line(sf_hlo_scan *scan)
{
    static const char *const titles[] = {"FileNames", "FunctionNames", "FileLocations",
                                         "StackFrames"};
    char c = sf_hlo_peek(scan);
    bool is_table = c >= '0' && c <= '9';
    sf_hlo_scan ahead = *scan;
    sf_str word = sf_hlo_word(&ahead);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        is_table = is_table || sf_str_is(word, titles[i]);
    if (is_table)
        sf_hlo_next_line(scan);
    return is_table;
}

static sf_status read_top(sf_hlo_reader *reader, sf_hlo_scan *scan)
{
    if (skip_table_line(scan))
        return SF_OK;
    bool is_entry = sf_hlo_accept_word(scan, "ENTRY");
    sf_loc loc = sf_hlo_here(scan);
    sf_str name = sf_hlo_name(scan);
    if (name.length == 0)
        return sf_hlo_expected(scan, "a computation", reader->diag);
    SF_TRY(skip_signature(reader, scan));
    if (sf_hlo_peek(scan) != '{')
        return sf_hlo_expected(scan, "the '{' of a computation", reader->diag);
    sf_hlo_scan body = *scan;
    body.at++;
    skip_group(scan);
    body.end = scan->at;
    while (sf_hlo_accept(scan, ',')) { /* execution_thread="..." */
        sf_hlo_word(scan);
        if (sf_hlo_accept(scan, '='))
            sf_hlo_balanced(scan);
    }
    return add_computation(reader, name, loc, is_entry, &body);
}

void sf_hlo_index(sf_hlo_reader *reader, sf_str text, const char *file)
{
    sf_hlo_scan scan = {.at = text.at,
                        .end = text.at + text.length,
                        .line_start = text.at,
                        .file = file,
                        .line = 1};
    if (!sf_hlo_accept_word(&scan, "HloModule")) {
        sf_hlo_count_error(reader, sf_hlo_expected(&scan, "'HloModule'", reader->diag));
        return;
    }
    sf_status status = read_header(reader, &scan);
    if (status != SF_OK) {
        sf_hlo_count_error(reader, status);
        sf_hlo_next_line(&scan);
    }
    bool was_bad = false;
    while (sf_hlo_peek(&scan) != '\0' || scan.at < scan.end) {
        /* Text between two computations is one mistake, however many lines it has. */
        sf_diag *diag = reader->diag;
        uint32_t line = scan.line;
        reader->diag = was_bad ? NULL : diag;
        status = read_top(reader, &scan);
        reader->diag = diag;
        if (status != SF_OK && !was_bad && !sf_hlo_count_error(reader, status))
            return;
        was_bad = status != SF_OK;
        if (was_bad && scan.line == line)
            sf_hlo_next_line(&scan);
    }
    reader->end = sf_hlo_here(&scan);
}
