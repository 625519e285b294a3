#include "report/page/page_html.h"

#include <string.h>

/* In a script element only "<" could end it or begin a comment; in JSON it occurs in strings alone,
 * where it can be written as a number. */
static void put_data(const sf_buf *json, sf_buf *out)
{
    for (const char *at = json->text, *end = at + json->length; at < end;) {
        size_t plain = strcspn(at, "<");
        sf_buf_add(out, at, plain);
        at += plain;
        if (*at == '<') {
            sf_buf_puts(out, "\\u003c");
            at++;
        }
    }
}

void sf_page_put(const sf_page_file *head, const sf_buf *json, const sf_page_file *tail,
                 sf_buf *out)
{
    sf_buf_add(out, (const char *)head->at, head->length);
    put_data(json, out);
    sf_buf_add(out, (const char *)tail->at, tail->length);
}
