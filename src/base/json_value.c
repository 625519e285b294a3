/* What can be asked of a value, and the writer. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"

bool sf_json_bool(const sf_json *value, bool *out)
{
    if (!value || value->kind != SF_JSON_BOOL)
        return false;
    *out = value->truth;
    return true;
}

bool sf_json_int(const sf_json *value, int64_t *out)
{
    if (!value || value->kind != SF_JSON_NUMBER || !value->exact)
        return false;
    *out = value->integer;
    return true;
}

bool sf_json_number(const sf_json *value, double *out)
{
    if (!value || value->kind != SF_JSON_NUMBER)
        return false;
    *out = value->exact ? (double)value->integer : value->number;
    return true;
}

bool sf_json_string(const sf_json *value, sf_str *out)
{
    if (!value || value->kind != SF_JSON_STRING)
        return false;
    *out = (sf_str){value->string, value->length};
    return true;
}

bool sf_json_hex(const sf_json *value, uint64_t *out)
{
    enum { DIGITS = 16 };
    sf_str text;
    if (!sf_json_string(value, &text) || text.length != DIGITS)
        return false;
    *out = 0;
    for (int i = 0; i < DIGITS; i++) {
        int digit = sf_hex_digit(text.at[i]);
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint64_t)digit;
    }
    return true;
}

const char *sf_json_kind_name(sf_json_kind kind)
{
    static const char *const names[] = {
        [SF_JSON_NULL] = "null",       [SF_JSON_BOOL] = "true or false",
        [SF_JSON_NUMBER] = "a number", [SF_JSON_STRING] = "a string",
        [SF_JSON_ARRAY] = "an array",  [SF_JSON_OBJECT] = "an object",
    };
    return names[kind];
}

static void break_line(sf_json_writer *writer)
{
    if (!writer->indent || writer->rows > 0)
        return;
    sf_buf_putc(writer->buf, '\n');
    for (int i = 0; i < writer->depth; i++)
        sf_buf_puts(writer->buf, "  ");
}

/* What stands between the value before and the one to come. */
static void separate_items(sf_json_writer *writer)
{
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (writer->any)
        sf_buf_puts(writer->buf, writer->rows > 0 && writer->indent ? ", " : ",");
    if (writer->depth > 0)
        break_line(writer);
}

static void put_raw(sf_json_writer *writer, const char *text)
{
    bool in_object = writer->depth > 0 && writer->open[writer->depth - 1] == '{';
    SF_ASSERT(in_object ? writer->after_key : writer->depth > 0 || !writer->any);
    separate_items(writer);
    sf_buf_puts(writer->buf, text);
    writer->any = true;
}

static void begin_container(sf_json_writer *writer, char kind)
{
    SF_ASSERT(writer->depth < SF_JSON_DEPTH);
    put_raw(writer, kind == '{' ? "{" : "[");
    writer->open[writer->depth++] = kind;
    writer->rows += kind == 'r';
    writer->any = false;
}

static void end_container(sf_json_writer *writer, char close)
{
    writer->depth--;
    if (writer->any)
        break_line(writer);
    writer->rows -= writer->open[writer->depth] == 'r';
    sf_buf_putc(writer->buf, close);
    writer->any = true;
}

void sf_json_begin_object(sf_json_writer *writer)
{
    begin_container(writer, '{');
}

void sf_json_begin_array(sf_json_writer *writer)
{
    begin_container(writer, '[');
}

void sf_json_begin_row(sf_json_writer *writer)
{
    begin_container(writer, 'r');
}

void sf_json_end_object(sf_json_writer *writer)
{
    SF_ASSERT(writer->depth > 0 && writer->open[writer->depth - 1] == '{' && !writer->after_key);
    end_container(writer, '}');
}

void sf_json_end_array(sf_json_writer *writer)
{
    SF_ASSERT(writer->depth > 0 && writer->open[writer->depth - 1] != '{');
    end_container(writer, ']');
}

/* All that must be escaped is below 2^16. */
static void add_escaped(sf_buf *buf, uint32_t c)
{
    static const char names[] = "\"\\bfnrt", values[] = "\"\\\b\f\n\r\t";
    const char *found = c > 0 && c < 0x80 ? strchr(values, (int)c) : NULL;
    if (found)
        sf_buf_printf(buf, "\\%c", names[found - values]);
    else
        sf_buf_printf(buf, "\\u%04x", c);
}

static void add_string(sf_buf *buf, sf_str text)
{
    if (!text.at)
        text = sf_str_of("");
    sf_buf_putc(buf, '"');
    const char *end_of_text = text.at + text.length;
    const char *plain = text.at; /* what is not yet added, and needs no change */
    for (const char *at = text.at; at < end_of_text;) {
        unsigned char c = (unsigned char)*at;
        sf_str rest = {at, (size_t)(end_of_text - at)};
        int length = sf_utf8_length(rest);
        if (sf_shown_length(rest) > 0 && c != '"' && c != '\\') {
            at += length;
            continue;
        }
        sf_buf_add(buf, plain, (size_t)(at - plain));
        if (length == 0)
            sf_buf_puts(buf, "\xef\xbf\xbd");
        else
            add_escaped(buf, sf_utf8_code(at, length));
        at += length > 0 ? length : 1;
        plain = at;
    }
    sf_buf_add(buf, plain, (size_t)(end_of_text - plain));
    sf_buf_putc(buf, '"');
}

void sf_json_key_str(sf_json_writer *writer, sf_str key)
{
    SF_ASSERT(writer->depth > 0 && writer->open[writer->depth - 1] == '{' && !writer->after_key);
    separate_items(writer);
    add_string(writer->buf, key);
    sf_buf_puts(writer->buf, writer->indent ? ": " : ":");
    writer->after_key = true;
}

void sf_json_key(sf_json_writer *writer, const char *key)
{
    sf_json_key_str(writer, sf_str_of(key));
}

void sf_json_put_null(sf_json_writer *writer)
{
    put_raw(writer, "null");
}

void sf_json_put_bool(sf_json_writer *writer, bool value)
{
    put_raw(writer, value ? "true" : "false");
}

void sf_json_put_int(sf_json_writer *writer, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    put_raw(writer, text);
}

void sf_json_put_hex(sf_json_writer *writer, uint64_t value)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    sf_json_put_string(writer, text);
}

void sf_json_put_double(sf_json_writer *writer, double value)
{
    if (!isfinite(value)) {
        put_raw(writer, "null");
        return;
    }
    put_raw(writer, "");
    sf_number_add(writer->buf, value);
}

void sf_json_put_str(sf_json_writer *writer, sf_str text)
{
    put_raw(writer, "");
    add_string(writer->buf, text);
}

void sf_json_put_string(sf_json_writer *writer, const char *text)
{
    sf_json_put_str(writer, sf_str_of(text));
}

void sf_json_add_bool(sf_json_writer *writer, const char *key, bool value)
{
    sf_json_key(writer, key);
    sf_json_put_bool(writer, value);
}

void sf_json_add_int(sf_json_writer *writer, const char *key, int64_t value)
{
    sf_json_key(writer, key);
    sf_json_put_int(writer, value);
}

void sf_json_add_hex(sf_json_writer *writer, const char *key, uint64_t value)
{
    sf_json_key(writer, key);
    sf_json_put_hex(writer, value);
}

void sf_json_add_double(sf_json_writer *writer, const char *key, double value)
{
    sf_json_key(writer, key);
    sf_json_put_double(writer, value);
}

void sf_json_add_string(sf_json_writer *writer, const char *key, const char *text)
{
    sf_json_key(writer, key);
    if (text)
        sf_json_put_string(writer, text);
    else
        sf_json_put_null(writer);
}

enum { MOST_KEY = 64 };

static const char *key_of_bytes(const char *key, char out[MOST_KEY])
{
    snprintf(out, MOST_KEY, "%s_bytes", key);
    return out;
}

void sf_json_add_path(sf_json_writer *writer, const char *key, const char *path)
{
    char other[MOST_KEY];
    sf_json_add_string(writer, key, path);
    if (!path || sf_utf8_is(sf_str_of(path)))
        return;
    sf_buf digits = {0};
    for (const char *at = path; *at; at++)
        sf_buf_printf(&digits, "%02x", (unsigned char)*at);
    sf_json_add_string(writer, key_of_bytes(key, other), digits.text);
    sf_buf_free(&digits);
}

static int digit_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

const char *sf_json_path(const sf_json *object, const char *key, sf_arena *arena)
{
    char other[MOST_KEY];
    sf_str text, digits;
    if (!sf_json_string(sf_json_get(object, key), &text))
        return NULL;
    if (!sf_json_string(sf_json_get(object, key_of_bytes(key, other)), &digits))
        return sf_arena_string(arena, text.at, text.length);
    char *path = sf_arena_alloc(arena, digits.length / 2 + 1);
    for (size_t i = 0; i + 1 < digits.length; i += 2) {
        int high = digit_value(digits.at[i]), low = digit_value(digits.at[i + 1]);
        if (high < 0 || low < 0 || high + low == 0)
            return NULL;
        path[i / 2] = (char)(high << 4 | low);
    }
    return digits.length % 2 == 0 ? path : NULL;
}
