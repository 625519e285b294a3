/* Reading HLO text: the characters.
 *
 * A scan is a place in the text and the bounds it stays within. It is a plain value: copy it to
 * look ahead, assign it to go back. `end` is either the end of the text, which is a zero byte, or
 * just after a closing brace; so a run of word characters never passes it. */
#ifndef SF_FRONT_HLO_HLO_SCAN_H
#define SF_FRONT_HLO_HLO_SCAN_H

#include <string.h>

#include "base/diag.h"
#include "base/str.h"

typedef struct sf_hlo_scan {
    const char *at, *end;
    const char *line_start;
    const char *file;
    uint32_t line;
} sf_hlo_scan;

/* Letters, digits and _ . - : the characters of names, opcodes and keys. */
extern const bool sf_hlo_is_word[256];

/* Skips blanks, line ends and comments. */
void sf_hlo_skip_space(sf_hlo_scan *scan);

static inline void sf_hlo_space(sf_hlo_scan *scan)
{
    if ((unsigned char)*scan->at <= ' ' || *scan->at == '/')
        sf_hlo_skip_space(scan);
}

/* The next character that is no space; 0 at the end. */
static inline char sf_hlo_peek(sf_hlo_scan *scan)
{
    sf_hlo_space(scan);
    return scan->at < scan->end ? *scan->at : '\0';
}

static inline bool sf_hlo_accept(sf_hlo_scan *scan, char c)
{
    if (sf_hlo_peek(scan) != c || c == '\0')
        return false;
    scan->at++;
    return true;
}

/* The place of the next token. */
static inline sf_loc sf_hlo_here(sf_hlo_scan *scan)
{
    sf_hlo_space(scan);
    return (sf_loc){scan->file, scan->line, (uint32_t)(scan->at - scan->line_start) + 1};
}

/* A word; of length 0 where there is none. A minus before > is left alone: it begins an arrow. */
sf_str sf_hlo_word(sf_hlo_scan *scan);

/* A word that may have a % in front, which is dropped. */
sf_str sf_hlo_name(sf_hlo_scan *scan);

/* True, and past it, when the next word is this one. */
bool sf_hlo_accept_word(sf_hlo_scan *scan, const char *word);

/* A decimal number, perhaps with a minus; false where there is none or it is too large. */
bool sf_hlo_number(sf_hlo_scan *scan, int64_t *out);

/* A quoted string on one line: the text between the quotes, with escapes. */
bool sf_hlo_string(sf_hlo_scan *scan, sf_str *out);

/* The value of an attribute nobody wants to understand: up to a comma, the end of the line or a
 * closing bracket that was not opened in it. */
sf_str sf_hlo_balanced(sf_hlo_scan *scan);

/* To the start of the next line. */
void sf_hlo_next_line(sf_hlo_scan *scan);

/* "expected WHAT, found ..." at the next token. */
sf_status sf_hlo_expected(sf_hlo_scan *scan, const char *what, sf_diag *diag);

sf_status sf_hlo_expect(sf_hlo_scan *scan, char c, sf_diag *diag);

/* Replaces the escapes of C in a string; the copy lives in the arena. */
sf_str sf_hlo_unescape(sf_arena *arena, sf_str raw);

#endif
