/* Text that tests of state put together, piece by piece. */
#ifndef SF_TEST_FRONT_PUT_TEXT_H
#define SF_TEST_FRONT_PUT_TEXT_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 16384 };

/* Adds to a text that has room for TEXT characters. */
static inline void put(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void put(char *text, const char *format, ...)
{
    size_t at = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + at, TEXT - at, format, list);
    va_end(list);
}

#endif
