#include "front/stablehlo/mlir_scan.h"

#include <string.h>

#include "base/number.h"

const bool sf_scan_name_char[256] = {
    ['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1, ['7'] = 1,
    ['8'] = 1, ['9'] = 1, ['_'] = 1, ['$'] = 1, ['.'] = 1, ['a'] = 1, ['b'] = 1, ['c'] = 1,
    ['d'] = 1, ['e'] = 1, ['f'] = 1, ['g'] = 1, ['h'] = 1, ['i'] = 1, ['j'] = 1, ['k'] = 1,
    ['l'] = 1, ['m'] = 1, ['n'] = 1, ['o'] = 1, ['p'] = 1, ['q'] = 1, ['r'] = 1, ['s'] = 1,
    ['t'] = 1, ['u'] = 1, ['v'] = 1, ['w'] = 1, ['x'] = 1, ['y'] = 1, ['z'] = 1, ['A'] = 1,
    ['B'] = 1, ['C'] = 1, ['D'] = 1, ['E'] = 1, ['F'] = 1, ['G'] = 1, ['H'] = 1, ['I'] = 1,
    ['J'] = 1, ['K'] = 1, ['L'] = 1, ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1, ['Q'] = 1,
    ['R'] = 1, ['S'] = 1, ['T'] = 1, ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1, ['Y'] = 1,
    ['Z'] = 1,
};

static bool in_name(char c)
{
    return sf_scan_name_char[(unsigned char)c];
}

static bool begins_name(char c)
{
    return in_name(c) && !sf_is_digit(c) && c != '$' && c != '.';
}

static void skip_line(sf_scan *scan)
{
    const char *end = memchr(scan->at, '\n', (size_t)(scan->end - scan->at));
    scan->at = end ? end : scan->end;
}

void sf_scan_blanks(sf_scan *scan)
{
    for (;;) {
        char c = *scan->at;
        if (c == '\n') {
            scan->line++;
            scan->line_start = scan->at + 1;
        } else if (c == '/' && scan->at[1] == '/') {
            skip_line(scan);
            continue;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
        scan->at++;
    }
}

bool sf_scan_text(sf_scan *scan, const char *text)
{
    sf_scan_skip(scan);
    size_t length = strlen(text);
    if (strncmp(scan->at, text, length) != 0)
        return false;
    scan->at += length;
    return true;
}

bool sf_scan_word(sf_scan *scan, const char *word)
{
    sf_scan_skip(scan);
    size_t length = strlen(word);
    if (strncmp(scan->at, word, length) != 0 || in_name(scan->at[length]))
        return false;
    scan->at += length;
    return true;
}

sf_str sf_scan_name(sf_scan *scan)
{
    sf_scan_skip(scan);
    const char *first = scan->at;
    if (begins_name(*first))
        while (in_name(*scan->at))
            scan->at++;
    return (sf_str){first, (size_t)(scan->at - first)};
}

sf_str sf_scan_sigil(sf_scan *scan, char sigil)
{
    if (!sf_scan_is(scan, sigil))
        return (sf_str){scan->at, 0};
    const char *first = scan->at + 1, *at = first;
    if (sf_is_digit(*at)) {
        while (sf_is_digit(*at))
            at++;
    } else {
        while (in_name(*at) || (*at == '-' && at[1] != '>'))
            at++;
    }
    if (at > first)
        scan->at = at;
    return (sf_str){first, (size_t)(at - first)};
}

bool sf_scan_int(sf_scan *scan, int64_t *out)
{
    sf_scan_skip(scan);
    const char *at = scan->at;
    bool negative = *at == '-';
    at += negative;
    unsigned base = 10;
    if (at[0] == '0' && at[1] == 'x' && sf_hex_digit(at[2]) >= 0) {
        base = 16;
        at += 2;
    }
    const char *first = at;
    uint64_t value = 0;
    for (;; at++) {
        int digit = base == 16 ? sf_hex_digit(*at) : sf_is_digit(*at) ? *at - '0' : -1;
        if (digit < 0)
            break;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (unsigned)digit, &value))
            return false;
    }
    if (at == first || (negative && value > (uint64_t)INT64_MAX + 1))
        return false;
    scan->at = at;
    *out = (int64_t)(negative ? 0 - value : value);
    return true;
}

bool sf_scan_quoted(sf_scan *scan, sf_str *out)
{
    if (!sf_scan_is(scan, '"'))
        return false;
    const char *first = scan->at + 1;
    for (const char *at = first; at < scan->end && *at != '\n'; at++) {
        if (*at == '\\' && at[1] != '\n' && at + 1 < scan->end) {
            at++;
        } else if (*at == '"') {
            *out = (sf_str){first, (size_t)(at - first)};
            scan->at = at + 1;
            return true;
        }
    }
    return false;
}

sf_str sf_scan_token(sf_scan *scan)
{
    if (sf_scan_done(scan))
        return (sf_str){scan->at, 0};
    enum { LONGEST = 40 };
    const char *at = scan->at;
    bool sigil = strchr("%@#!^\"", *at) && *at;
    if (in_name(*at) || (sigil && in_name(at[1]))) {
        at++;
        while (in_name(*at) && at - scan->at < LONGEST)
            at++;
    } else {
        int length = sf_utf8_length((sf_str){at, (size_t)(scan->end - at)});
        at += length ? length : 1;
    }
    return (sf_str){scan->at, (size_t)(at - scan->at)};
}

/* Steps over one character, a string or an arrow, and returns the character. A string without an
 * end takes the remaining line. */
static char step_character(sf_scan *scan)
{
    sf_str string;
    char c = *scan->at;
    if (c == '"') {
        if (!sf_scan_quoted(scan, &string))
            skip_line(scan);
        return c;
    }
    scan->at += c == '-' && scan->at[1] == '>' ? 2 : 1;
    return c;
}

bool sf_scan_balanced(sf_scan *scan)
{
    size_t depth = 0;
    while (!sf_scan_done(scan)) {
        char c = step_character(scan);
        if (c == '(' || c == '[' || c == '{' || c == '<')
            depth++;
        else if ((c == ')' || c == ']' || c == '}' || c == '>') && --depth == 0)
            return true;
    }
    return false;
}

static bool skip_number(sf_scan *scan)
{
    const char *at = scan->at;
    at += *at == '-';
    if (!sf_is_digit(*at))
        return false;
    while (in_name(*at) || ((*at == '-' || *at == '+') && (at[-1] == 'e' || at[-1] == 'E')))
        at++;
    scan->at = at;
    return true;
}

/* The head of a value: all but the brackets that may follow it. */
static bool skip_head(sf_scan *scan)
{
    sf_str text;
    char c = *scan->at;
    if (c == '"')
        return sf_scan_quoted(scan, &text);
    if (c == '[' || c == '{' || c == '(')
        return sf_scan_balanced(scan);
    if (c == '@' && scan->at[1] == '"') {
        scan->at++;
        return sf_scan_quoted(scan, &text);
    }
    if (c == '@' || c == '#' || c == '!')
        return sf_scan_sigil(scan, c).length > 0;
    return skip_number(scan) || sf_scan_name(scan).length > 0;
}

bool sf_scan_value(sf_scan *scan)
{
    sf_scan end;
    do {
        sf_scan_skip(scan);
        bool word = begins_name(*scan->at) || *scan->at == '#' || *scan->at == '!';
        bool location = *scan->at == 'l';
        if (!skip_head(scan))
            return false;
        if (word && (*scan->at == '<' || (location && *scan->at == '(')) && !sf_scan_balanced(scan))
            return false;
        end = *scan;
    } while (sf_scan_text(scan, "->") || sf_scan_text(scan, "::") || sf_scan_take(scan, ':'));
    *scan = end; /* the blanks after it are not part of it */
    return true;
}

/* Whether the line goes on with the results of an op: `%a =`, `%a:2 =`, `%a, %b =`. */
static bool begins_results(sf_scan scan)
{
    if (!sf_scan_sigil(&scan, '%').length)
        return false;
    return *scan.at == ':' || sf_scan_is(&scan, '=') || sf_scan_is(&scan, ',');
}

static bool begins_op(sf_scan scan)
{
    char c = *scan.at;
    if (c == '%')
        return begins_results(scan);
    if (c == '"' || c == '^' || c == '}' || c == '#' || c == '!')
        return true;
    sf_str name = sf_scan_name(&scan);
    return memchr(name.at, '.', name.length) || sf_str_is(name, "return") ||
           sf_str_is(name, "call") || sf_str_is(name, "module");
}

/* Only curly brackets count: they hold nested ops, and the others may be the error. */
void sf_scan_recover(sf_scan *scan)
{
    size_t depth = 0;
    sf_scan_skip(scan);
    uint32_t line = scan->line;
    const char *first = scan->at;
    while (!sf_scan_done(scan)) {
        bool new_line = scan->line != line;
        line = scan->line;
        if (depth == 0 && scan->at > first && (*scan->at == '}' || (new_line && begins_op(*scan))))
            return;
        char c = step_character(scan);
        if (c == '{')
            depth++;
        else if (c == '}' && depth > 0)
            depth--;
    }
}
