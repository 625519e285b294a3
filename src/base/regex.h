/* Regular expressions for names that a schedule or a user gives.
 *
 * The syntax is the part of POSIX's extended syntax and of RE2's that has no counts and no back references: characters,
 * ., [a-z] and [^a-z] with classes such as [:alnum:], ^, $, *, +, ?, |, ( ), and \ before a character that stands for itself.
 *
 * A pattern becomes a nondeterministic automaton, which is walked in all its states at once (Thompson, "Regular
 * expression search algorithm", 1968). So neither memory nor time depends on what the pattern means: it takes no
 * memory, and a search takes at most `count` steps for each character.
 */
#ifndef SF_BASE_REGEX_H
#define SF_BASE_REGEX_H

#include <stdbool.h>
#include <stdint.h>

enum { SF_REGEX_CHARACTERS = 200, SF_REGEX_STATES = 3 * SF_REGEX_CHARACTERS };

typedef struct sf_regex_state {
    uint8_t kind;
    int16_t next[2];  /* relative */
    uint8_t bits[32]; /* the characters that it takes */
} sf_regex_state;

/* Plain data, of the caller's. */
typedef struct sf_regex {
    int count;
    sf_regex_state states[SF_REGEX_STATES];
} sf_regex;

/* NULL, or what is wrong with the pattern. */
const char *sf_regex_read(const char *pattern, sf_regex *out);

/* Whether the pattern matches somewhere in the text. */
bool sf_regex_finds(const sf_regex *regex, const char *text);

#endif
