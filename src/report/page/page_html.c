/* The page: a frame with parts in their places, the data in the last of them. Nothing in it asks for anything outside. */
#include "report/page/page_html.h"

#include <string.h>

static void put_title(sf_page *page, sf_buf *out)
{
    sf_html_text(page->title, out);
}

static void put_style(sf_page *page, sf_buf *out)
{
    (void)page;
    sf_buf_add(out, (const char *)sf_page_style.at, sf_page_style.length);
}

static void put_script(sf_page *page, sf_buf *out)
{
    (void)page;
    sf_buf_add(out, (const char *)sf_page_script.at, sf_page_script.length);
}

/* In a script element only "<" could end it or begin a comment; in JSON it stands in strings alone, where it can be
 * written as a number. */
static void put_data(sf_page *page, sf_buf *out)
{
    sf_buf json = {0};
    sf_page_json(page, false, &json);
    for (const char *at = json.text, *end = at + json.length; at < end;) {
        size_t plain = strcspn(at, "<");
        sf_buf_add(out, at, plain);
        at += plain;
        if (*at == '<') {
            sf_buf_puts(out, "\\u003c");
            at++;
        }
    }
    sf_buf_free(&json);
}

static const struct {
    const char *name;
    sf_page_part *put;
} parts[] = {
    {"title", put_title},
    {"style", put_style},
    {"glance", sf_page_put_glance},
    {"memory", sf_page_put_memory},
    {"passes", sf_page_put_passes},
    {"traffic", sf_page_put_traffic},
    {"scopes", sf_page_put_scopes},
    {"frontier", sf_page_put_frontier},
    {"recipes", sf_page_put_recipes},
    {"schedule", sf_page_put_schedule},
    {"measured", sf_page_put_measured},
    {"data", put_data},
    {"script", put_script},
};

static void put_part(sf_page *page, sf_str name, sf_buf *out)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (sf_str_is(name, parts[i].name)) {
            parts[i].put(page, out);
            return;
        }
    SF_ASSERT(false); /* the frame is ours */
}

/* A part stands where the frame has its name in double braces. */
void sf_page_html(sf_page *page, sf_buf *out)
{
    const char *at = (const char *)sf_page_frame.at, *end = at + sf_page_frame.length;
    while (at < end) {
        const char *open = memmem(at, (size_t)(end - at), "{{", 2);
        const char *close = open ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;
        if (!close) {
            sf_buf_add(out, at, (size_t)(end - at));
            return;
        }
        sf_buf_add(out, at, (size_t)(open - at));
        put_part(page, (sf_str){open + 2, (size_t)(close - open - 2)}, out);
        at = close + 2;
    }
}
