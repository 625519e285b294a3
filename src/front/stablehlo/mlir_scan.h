/* Characters of MLIR text: the reader's place, and the small tokens it takes from there.
 *
 * There are no token objects: a parser requests a token that the grammar allows next, and the
 * scanner takes it or changes nothing. Every function skips blanks and `//` comments first. The
 * text ends with a zero, which no token contains, so no function reads past the end. */
#ifndef SF_FRONT_STABLEHLO_MLIR_SCAN_H
#define SF_FRONT_STABLEHLO_MLIR_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* A place in the text. Copying it is how a parser remembers where it was. */
typedef struct sf_scan {
    const char *at, *end;
    const char *line_start;
    uint32_t line; /* from 1 */
} sf_scan;

void sf_scan_blanks(sf_scan *scan);

static inline void sf_scan_skip(sf_scan *scan)
{
    unsigned char c = (unsigned char)*scan->at;
    if (c == ' ') {
        scan->at++;
        c = (unsigned char)*scan->at;
    }
    if (c <= ' ' || c == '/')
        sf_scan_blanks(scan);
}

static inline bool sf_scan_is(sf_scan *scan, char c)
{
    sf_scan_skip(scan);
    return *scan->at == c;
}

static inline bool sf_scan_take(sf_scan *scan, char c)
{
    if (!sf_scan_is(scan, c))
        return false;
    scan->at++;
    return true;
}

static inline bool sf_scan_done(sf_scan *scan)
{
    sf_scan_skip(scan);
    return scan->at >= scan->end;
}

/* True for the characters of a bare identifier after its first: letters, digits, _ $ and the dot. */
extern const bool sf_scan_name_char[256];

/* Takes punctuation of several characters, "->". */
bool sf_scan_text(sf_scan *scan, const char *text);

/* Takes a keyword; not the beginning of a longer name. */
bool sf_scan_word(sf_scan *scan, const char *word);

/* A bare identifier such as `stablehlo.add`; empty where there is none. */
sf_str sf_scan_name(sf_scan *scan);

/* The name after a sigil (%0, @main, #loc1), without it; empty if the sigil is not there. */
sf_str sf_scan_sigil(sf_scan *scan, char sigil);

/* A decimal or hexadecimal integer with an optional minus. False where there is none, or where it
 * does not fit in 64 bits; a value above INT64_MAX comes as its two's complement. */
bool sf_scan_int(sf_scan *scan, int64_t *out);

/* The inside of a string in quotes, with escapes. False if there is none, or if its end is not on
 * the same line. */
bool sf_scan_quoted(sf_scan *scan, sf_str *out);

/* The token at the place, for a message; empty at the end of the text. */
sf_str sf_scan_token(sf_scan *scan);

/* Skips a bracketed text with everything in it; the place is at its opening bracket. False when the
 * text ends first. */
bool sf_scan_balanced(sf_scan *scan);

/* Skips an attribute value or a type of any kind, also with a trailing `: type`. False if none is
 * next. */
bool sf_scan_value(sf_scan *scan);

/* Skips to the next op of the same nesting, or to the bracket that ends it: for recovery after an
 * error. The place is where the op with the error began. */
void sf_scan_recover(sf_scan *scan);

#endif
