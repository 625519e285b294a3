/* Strings: a borrowed view, and a buffer that grows. */
#ifndef SF_BASE_STR_H
#define SF_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct sf_str {
    const char *at;
    size_t length;
} sf_str;

/* For a literal, whose length is then known, or any zero-terminated string. */
static inline sf_str sf_str_of(const char *text)
{
    return (sf_str){text, strlen(text)};
}

static inline bool sf_str_equal(sf_str a, sf_str b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

static inline bool sf_str_is(sf_str text, const char *expected)
{
    return sf_str_equal(text, sf_str_of(expected));
}

static inline bool sf_str_starts(sf_str text, const char *prefix)
{
    size_t length = strlen(prefix);
    return text.length >= length && (length == 0 || memcmp(text.at, prefix, length) == 0);
}

/* The plural ending of a noun after a count, "%d byte%s". */
static inline const char *sf_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* The number of bytes of the UTF-8 character that `text` begins with; 0 where it does not begin with
 * a well-formed one (Unicode, table 3-7: no overlong forms, no surrogates). */
int sf_utf8_length(sf_str text);

bool sf_utf8_is(sf_str text); /* all of it */

/* The number of a character of `length` bytes, as sf_utf8_length gave them. */
uint32_t sf_utf8_code(const char *at, int length);

/* The number of bytes of the character that `text` begins with, if that can be shown to people as it is; 0 where it is
 * malformed or a control character: of C0 or C1, or one that changes the direction of writing. */
int sf_shown_length(sf_str text);

/* Writes foreign text so that no part of it moves a cursor or is invisible: unprintable characters
 * become "\x1b", byte by byte. As snprintf: returns the full length, and writes as much as there is
 * room for. */
size_t sf_show_text(sf_str text, char *out, size_t size);

/* The arguments of "%.*s", for messages: cut off after 1000 bytes. */
#define SF_STR_ARGS(s) (int)((s).length > 1000 ? 1000 : (s).length), (s).at

/* A zeroed sf_buf is empty. `text` is zero-terminated once anything was added. */
typedef struct sf_buf {
    char *text;
    size_t length, capacity;
} sf_buf;

void sf_buf_free(sf_buf *buf);
void sf_buf_add(sf_buf *buf, const char *text, size_t length);
void sf_buf_puts(sf_buf *buf, const char *text);
void sf_buf_putc(sf_buf *buf, char c);
void sf_buf_printf(sf_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sf_buf_vprintf(sf_buf *buf, const char *format, va_list args);
void sf_buf_show(sf_buf *buf, sf_str text); /* as sf_show_text */

#endif
