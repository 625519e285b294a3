#include "base/str.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

int sf_utf8_length(sf_str text)
{
    const unsigned char *at = (const unsigned char *)text.at;
    if (text.length == 0)
        return 0;
    if (at[0] < 0x80)
        return 1;
    int length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || text.length < (size_t)length)
        return 0;
    unsigned char lowest = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char highest = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < lowest || at[1] > highest)
        return 0;
    for (int i = 2; i < length; i++)
        if (at[i] < 0x80 || at[i] > 0xbf)
            return 0;
    return length;
}

/* Marks, embeddings, overrides and isolates (Unicode, annex 9). */
static bool turns_direction(uint32_t c)
{
    return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

/* How many bytes at the beginning are ASCII, in steps of eight. */
static size_t ascii_length(sf_str text)
{
    size_t at = 0;
    for (uint64_t word; at + sizeof word <= text.length; at += sizeof word) {
        memcpy(&word, text.at + at, sizeof word);
        if (word & 0x8080808080808080u)
            break;
    }
    return at;
}

bool sf_utf8_is(sf_str text)
{
    size_t plain = ascii_length(text);
    text = (sf_str){text.at + plain, text.length - plain};
    for (int length; text.length > 0; text.at += length, text.length -= (size_t)length)
        if ((length = sf_utf8_length(text)) == 0)
            return false;
    return true;
}

uint32_t sf_utf8_code(const char *at, int length)
{
    const unsigned char *byte = (const unsigned char *)at;
    uint32_t c = length == 1 ? byte[0] : byte[0] & (0x7fu >> length);
    for (int i = 1; i < length; i++)
        c = c << 6 | (byte[i] & 0x3f);
    return c;
}

int sf_shown_length(sf_str text)
{
    int length = sf_utf8_length(text);
    uint32_t c = length > 0 ? sf_utf8_code(text.at, length) : 0;
    bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0) || turns_direction(c);
    return is_control ? 0 : length;
}

size_t sf_show_text(sf_str text, char *out, size_t size)
{
    size_t total = 0, written = 0;
    for (size_t i = 0; i < text.length;) {
        char escape[8];
        int length = sf_shown_length((sf_str){text.at + i, text.length - i});
        const char *from = text.at + i;
        size_t count = (size_t)length;
        if (length == 0) {
            count = (size_t)snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)*from);
            from = escape;
        }
        if (written == total && total + count < size) {
            memcpy(out + total, from, count);
            written += count;
        }
        total += count;
        i += length > 0 ? (size_t)length : 1;
    }
    if (size > 0)
        out[written] = 0;
    return total;
}

void sf_buf_free(sf_buf *buf)
{
    sf_free(buf->text);
    *buf = (sf_buf){0};
}

static void reserve_text(sf_buf *buf, size_t more)
{
    size_t need = buf->length + more + 1;
    if (need <= buf->capacity)
        return;
    size_t capacity = buf->capacity ? buf->capacity * 2 : 256;
    if (capacity < need)
        capacity = need;
    char *larger = sf_alloc(capacity);
    if (buf->length)
        memcpy(larger, buf->text, buf->length);
    sf_free(buf->text);
    buf->text = larger;
    buf->capacity = capacity;
}

void sf_buf_add(sf_buf *buf, const char *text, size_t length)
{
    reserve_text(buf, length);
    if (length)
        memcpy(buf->text + buf->length, text, length);
    buf->length += length;
    buf->text[buf->length] = 0;
}

void sf_buf_puts(sf_buf *buf, const char *text)
{
    sf_buf_add(buf, text, strlen(text));
}

void sf_buf_putc(sf_buf *buf, char c)
{
    sf_buf_add(buf, &c, 1);
}

void sf_buf_vprintf(sf_buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length > 0) {
        reserve_text(buf, (size_t)length);
        vsnprintf(buf->text + buf->length, (size_t)length + 1, format, again);
        buf->length += (size_t)length;
    }
    va_end(again);
}

void sf_buf_printf(sf_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sf_buf_vprintf(buf, format, args);
    va_end(args);
}

void sf_buf_show(sf_buf *buf, sf_str text)
{
    size_t length = sf_show_text(text, NULL, 0);
    reserve_text(buf, length);
    buf->length += sf_show_text(text, buf->text + buf->length, length + 1);
}
