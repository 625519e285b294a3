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
