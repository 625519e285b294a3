#include "front/hlo/hlo_scan.h"

const bool sf_hlo_is_word[256] = {
    ['-'] = true, ['.'] = true, ['_'] = true, ['0'] = true, ['1'] = true, ['2'] = true,
    ['3'] = true, ['4'] = true, ['5'] = true, ['6'] = true, ['7'] = true, ['8'] = true,
    ['9'] = true, ['A'] = true, ['B'] = true, ['C'] = true, ['D'] = true, ['E'] = true,
    ['F'] = true, ['G'] = true, ['H'] = true, ['I'] = true, ['J'] = true, ['K'] = true,
    ['L'] = true, ['M'] = true, ['N'] = true, ['O'] = true, ['P'] = true, ['Q'] = true,
    ['R'] = true, ['S'] = true, ['T'] = true, ['U'] = true, ['V'] = true, ['W'] = true,
    ['X'] = true, ['Y'] = true, ['Z'] = true, ['a'] = true, ['b'] = true, ['c'] = true,
    ['d'] = true, ['e'] = true, ['f'] = true, ['g'] = true, ['h'] = true, ['i'] = true,
    ['j'] = true, ['k'] = true, ['l'] = true, ['m'] = true, ['n'] = true, ['o'] = true,
    ['p'] = true, ['q'] = true, ['r'] = true, ['s'] = true, ['t'] = true, ['u'] = true,
    ['v'] = true, ['w'] = true, ['x'] = true, ['y'] = true, ['z'] = true,
};

static void line_end(sf_hlo_scan *scan)
{
    scan->at++;
    scan->line++;
    scan->line_start = scan->at;
}

/* Past a comment, of which the first two characters are known. */
static void skip_comment(sf_hlo_scan *scan)
{
    bool is_block = scan->at[1] == '*';
    scan->at += 2;
    while (scan->at < scan->end) {
        if (is_block && scan->at[0] == '*' && scan->end - scan->at > 1 && scan->at[1] == '/') {
            scan->at += 2;
            return;
        }
        if (*scan->at == '\n') {
            if (!is_block)
                return;
            line_end(scan);
        } else {
            scan->at++;
        }
    }
}

void sf_hlo_skip_space(sf_hlo_scan *scan)
{
    while (scan->at < scan->end) {
        switch (*scan->at) {
        case ' ':
        case '\t':
        case '\r':
            scan->at++;
            break;
        case '\n':
            line_end(scan);
            break;
        case '/':
            if (scan->end - scan->at < 2 || (scan->at[1] != '*' && scan->at[1] != '/'))
                return;
            skip_comment(scan);
            break;
        default:
            return;
        }
    }
}

sf_str sf_hlo_word(sf_hlo_scan *scan)
{
    sf_hlo_space(scan);
    const char *first = scan->at, *at = first;
    while (at < scan->end && sf_hlo_is_word[(unsigned char)*at] && !(*at == '-' && at[1] == '>'))
        at++;
    scan->at = at;
    return (sf_str){first, (size_t)(at - first)};
}

sf_str sf_hlo_name(sf_hlo_scan *scan)
{
    sf_hlo_accept(scan, '%');
    return sf_hlo_word(scan);
}

bool sf_hlo_accept_word(sf_hlo_scan *scan, const char *word)
{
    sf_hlo_space(scan);
    if (*scan->at != *word)
        return false;
    sf_hlo_scan ahead = *scan;
    if (!sf_str_is(sf_hlo_word(&ahead), word))
        return false;
    *scan = ahead;
    return true;
}

bool sf_hlo_number(sf_hlo_scan *scan, int64_t *out)
{
    sf_hlo_space(scan);
    const char *at = scan->at;
    bool is_negative = *at == '-';
    at += is_negative;
    const char *first = at;
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (at == first || at > scan->end)
        return false;
    scan->at = at;
    *out = is_negative ? -(int64_t)value : (int64_t)value;
    return true;
}

bool sf_hlo_string(sf_hlo_scan *scan, sf_str *out)
{
    if (sf_hlo_peek(scan) != '"')
        return false;
    const char *first = scan->at + 1, *at = first;
    while (at < scan->end && *at != '"' && *at != '\n')
        at += *at == '\\' && scan->end - at > 1 && at[1] != '\n' ? 2 : 1;
    if (at >= scan->end || *at != '"')
        return false;
    *out = (sf_str){first, (size_t)(at - first)};
    scan->at = at + 1;
    return true;
}

sf_str sf_hlo_balanced(sf_hlo_scan *scan)
{
    sf_hlo_space(scan);
    const char *first = scan->at;
    size_t depth = 0;
    sf_str ignored;
    while (scan->at < scan->end) {
        char c = *scan->at;
        if (c == '"') {
            if (!sf_hlo_string(scan, &ignored))
                scan->at++;
            continue;
        }
        if (depth == 0 && (c == ',' || c == '\n' || c == '}' || c == ')' || c == ']'))
            break;
        if (c == '\n') {
            line_end(scan);
            continue;
        }
        depth += c == '{' || c == '(' || c == '[';
        depth -= c == '}' || c == ')' || c == ']';
        scan->at++;
    }
    const char *last = scan->at;
    while (last > first && (unsigned char)last[-1] <= ' ')
        last--;
    return (sf_str){first, (size_t)(last - first)};
}

void sf_hlo_next_line(sf_hlo_scan *scan)
{
    const char *at = memchr(scan->at, '\n', (size_t)(scan->end - scan->at));
    scan->at = at ? at : scan->end;
    if (at)
        line_end(scan);
}

sf_status sf_hlo_expected(sf_hlo_scan *scan, const char *what, sf_diag *diag)
{
    sf_loc loc = sf_hlo_here(scan);
    if (scan->at >= scan->end)
        return sf_fail(diag, SF_EINPUT, loc, "expected %s, found the end of the %s", what,
                       *scan->at ? "computation" : "text");
    sf_hlo_scan ahead = *scan;
    sf_str found = sf_hlo_word(&ahead);
    if (found.length == 0)
        found = (sf_str){scan->at, 1};
    if (found.length > 60)
        found.length = 60;
    if (found.length == 1 && ((unsigned char)*found.at < ' ' || (unsigned char)*found.at > '~'))
        return sf_fail(diag, SF_EINPUT, loc, "expected %s, found the byte 0x%02x", what,
                       (unsigned char)*found.at);
    return sf_fail(diag, SF_EINPUT, loc, "expected %s, found '%.*s'", what, SF_STR_ARGS(found));
}

sf_status sf_hlo_expect(sf_hlo_scan *scan, char c, sf_diag *diag)
{
    if (sf_hlo_accept(scan, c))
        return SF_OK;
    return sf_hlo_expected(scan, (const char[]){'\'', c, '\'', '\0'}, diag);
}

/* One escape, at the character after the backslash; gives the character and returns how many bytes
 * the escape has after the backslash. */
static size_t unescape_one(const char *at, size_t left, char *out)
{
    static const char from[] = "nrtabfv", to[] = "\n\r\t\a\b\f\v";
    unsigned value = 0;
    size_t used = 0;
    if (*at >= '0' && *at <= '7') {
        for (; used < 3 && used < left && at[used] >= '0' && at[used] <= '7'; used++)
            value = value * 8 + (unsigned)(at[used] - '0');
        *out = (char)(unsigned char)value;
        return used;
    }
    if (*at == 'x') {
        for (used = 1; used < 3 && used < left; used++) {
            const char *hex = "0123456789abcdef";
            const char *digit = at[used] ? strchr(hex, at[used] | 0x20) : NULL;
            if (!digit)
                break;
            value = value * 16 + (unsigned)(digit - hex);
        }
        *out = used > 1 ? (char)(unsigned char)value : 'x';
        return used;
    }
    const char *known = *at ? strchr(from, *at) : NULL;
    *out = known ? to[known - from] : *at;
    return 1;
}

sf_str sf_hlo_unescape(sf_arena *arena, sf_str raw)
{
    if (raw.length == 0 || !memchr(raw.at, '\\', raw.length))
        return raw;
    char *copy = sf_arena_alloc(arena, raw.length + 1);
    size_t length = 0;
    for (size_t i = 0; i < raw.length;) {
        if (raw.at[i] != '\\' || i + 1 == raw.length)
            copy[length++] = raw.at[i++];
        else
            i += 1 + unescape_one(raw.at + i + 1, raw.length - i - 1, &copy[length++]);
    }
    return (sf_str){copy, length};
}
