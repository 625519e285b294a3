/* The page around the data: what its parts share. */
#ifndef SF_REPORT_PAGE_HTML_H
#define SF_REPORT_PAGE_HTML_H

#include "report/page/page.h"

/* Files of page/, embedded when the library is built (cmake/embed.cmake); no zero byte at their end. */
typedef struct sf_page_file {
    const unsigned char *at;
    size_t length;
} sf_page_file;
extern const sf_page_file sf_page_frame, sf_page_style, sf_page_script;

/* Foreign text, for HTML and values of attributes: nothing in it is markup, and all of it can be seen. */
void sf_html_text(const char *text, sf_buf *out);

/* Parts of the page, in its frame under these names: tables, which need no script. */
typedef void sf_page_part(sf_page *page, sf_buf *out);
sf_page_part sf_page_put_glance, sf_page_put_memory, sf_page_put_traffic, sf_page_put_scopes,
    sf_page_put_frontier, sf_page_put_recipes, sf_page_put_schedule, sf_page_put_measured,
    sf_page_put_passes;

#endif
