/* JSON (RFC 8259): a strict reader into a tree, and a writer.
 *
 * The reader takes what the RFC takes and nothing else, apart from a byte order mark, which it skips.
 * Beyond the RFC it refuses duplicate keys, escapes that are no Unicode character, numbers past the
 * range of a double, nesting deeper than SF_JSON_DEPTH and texts of 4 GiB or more. The tree lives in
 * the caller's arena, is never changed, and does not refer to the text.
 */
#ifndef SF_BASE_JSON_H
#define SF_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"

enum { SF_JSON_DEPTH = 128 };

typedef enum sf_json_kind {
    SF_JSON_NULL,
    SF_JSON_BOOL,
    SF_JSON_NUMBER,
    SF_JSON_STRING,
    SF_JSON_ARRAY,
    SF_JSON_OBJECT,
} sf_json_kind;

/* A value, in 16 bytes because there are millions. Read it with the functions below. */
typedef struct sf_json {
    uint8_t kind;
    bool exact;      /* a number that was written as an integer and fits int64_t */
    uint32_t length; /* bytes of a string, items, members; for the others the offset in the text */
    union {
        bool truth;
        int64_t integer;             /* exact */
        double number;               /* not exact */
        const char *string;          /* UTF-8, zero-terminated; its offset stands in front of it */
        const struct sf_json *items; /* of an object: key, value, key, value, ..., then its index */
        uint64_t offset;             /* in the text, of an empty array or object */
    };
} sf_json;

/* Parses one value with nothing but white space around it. `file` is for messages. */
sf_status sf_json_parse(sf_str text, const char *file, sf_arena *arena, const sf_json **out,
                        sf_diag *diag);

/* Where in the text a value stands, for messages about what it means: `text` and `file` are those it
 * was parsed from. Of an array or object, the place of what is first in it. */
sf_loc sf_json_loc(const sf_json *value, sf_str text, const char *file);

/* Reports what is wrong with a value, there. A reader has `text`, `file` and `diag`. */
#define SF_JSON_FAIL(reader, value, ...)                                                           \
    sf_fail((reader)->diag, SF_EINPUT, sf_json_loc((value), (reader)->text, (reader)->file),       \
            __VA_ARGS__)

/* The value of a key; NULL when there is none, and when `object` is NULL or no object. */
const sf_json *sf_json_get(const sf_json *object, const char *key);

/* True, and *out set, when the value is one of these; false also for NULL, so that a look-up needs no
 * check of its own. A number that is not exact is no integer, 1.0 included. */
bool sf_json_bool(const sf_json *value, bool *out);
bool sf_json_int(const sf_json *value, int64_t *out);
bool sf_json_number(const sf_json *value, double *out);
bool sf_json_string(const sf_json *value, sf_str *out);

/* Of a string of 16 digits, as sf_json_put_hex writes it. */
bool sf_json_hex(const sf_json *value, uint64_t *out);

/* NULL has no kind: it is SF_JSON_NULL as well. */
static inline sf_json_kind sf_json_kind_of(const sf_json *value)
{
    return value ? (sf_json_kind)value->kind : SF_JSON_NULL;
}

/* "an array", "a string", ... for messages. */
const char *sf_json_kind_name(sf_json_kind kind);

/* The number of items of an array or members of an object; 0 for all others and NULL. */
static inline size_t sf_json_count(const sf_json *value)
{
    sf_json_kind kind = sf_json_kind_of(value);
    return kind == SF_JSON_ARRAY || kind == SF_JSON_OBJECT ? value->length : 0;
}

/* Item `at` of an array, key and value of member `at` of an object; at < sf_json_count(value). */
static inline const sf_json *sf_json_item(const sf_json *array, size_t at)
{
    return &array->items[at];
}

static inline sf_str sf_json_key_at(const sf_json *object, size_t at)
{
    const sf_json *key = &object->items[2 * at];
    return (sf_str){key->string, key->length};
}

static inline const sf_json *sf_json_value_at(const sf_json *object, size_t at)
{
    return &object->items[2 * at + 1];
}

/* Writes into `buf`, which the caller owns. Commas, colons and line breaks come by themselves:
 *
 *     sf_json_writer writer = {.buf = &buf, .indent = true};
 *     sf_json_begin_object(&writer);
 *     sf_json_add_int(&writer, "size", 3);
 *     sf_json_key(&writer, "shape");
 *     sf_json_begin_row(&writer);
 *     ...
 *     sf_json_end_array(&writer);
 *     sf_json_end_object(&writer);
 */
typedef struct sf_json_writer {
    sf_buf *buf;
    bool indent; /* a line for each item, two spaces a level; else all on one line */
    bool any;    /* something stands in the innermost container */
    bool after_key;
    int depth, rows;
    char open[SF_JSON_DEPTH]; /* '{' or '[', 'r' for a row */
} sf_json_writer;

void sf_json_begin_object(sf_json_writer *writer);
void sf_json_end_object(sf_json_writer *writer);
void sf_json_begin_array(sf_json_writer *writer);
void sf_json_end_array(sf_json_writer *writer);

/* An array that stays on one line, with all that is in it, also when indenting. Ends as an array. */
void sf_json_begin_row(sf_json_writer *writer);

void sf_json_key(sf_json_writer *writer, const char *key);
void sf_json_key_str(sf_json_writer *writer, sf_str key);
void sf_json_put_null(sf_json_writer *writer);
void sf_json_put_bool(sf_json_writer *writer, bool value);
void sf_json_put_int(sf_json_writer *writer, int64_t value);

/* 16 digits, as a string: 64 bits do not fit the numbers that readers of JSON have. */
void sf_json_put_hex(sf_json_writer *writer, uint64_t value);

/* The shortest form that reads back as the same double (%.17g where 15 and 16 digits do not); it
 * always has a point or an exponent, so that it does not read back as an integer. NaN and the
 * infinities, which JSON lacks, are null. */
void sf_json_put_double(sf_json_writer *writer, double value);

/* Bytes that are not UTF-8 become U+FFFD. */
void sf_json_put_string(sf_json_writer *writer, const char *text);
void sf_json_put_str(sf_json_writer *writer, sf_str text);

/* A key and its value, as the functions above write them. A text of NULL is null. */
void sf_json_add_bool(sf_json_writer *writer, const char *key, bool value);
void sf_json_add_int(sf_json_writer *writer, const char *key, int64_t value);
void sf_json_add_hex(sf_json_writer *writer, const char *key, uint64_t value);
void sf_json_add_double(sf_json_writer *writer, const char *key, double value);
void sf_json_add_string(sf_json_writer *writer, const char *key, const char *text);

/* The name of a file, which may hold any bytes: where they are not UTF-8 a member KEY_bytes follows, with all of them in
 * hexadecimal. Reading it gives the same bytes; NULL where there is no such string, or the digits are none. */
void sf_json_add_path(sf_json_writer *writer, const char *key, const char *path);
const char *sf_json_path(const sf_json *object, const char *key, sf_arena *arena);

#endif
