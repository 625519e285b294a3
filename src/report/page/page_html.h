/* Pages: static files of this folder, which the library carries (cmake/page.cmake), around data as JSON that their scripts show. */
#ifndef SF_REPORT_PAGE_HTML_H
#define SF_REPORT_PAGE_HTML_H

#include <stddef.h>

#include "base/str.h"

/* No zero byte at the end. */
typedef struct sf_page_file {
    const unsigned char *at;
    size_t length;
} sf_page_file;

/* The text before the data, and after. */
extern const sf_page_file sf_plan_page_head, sf_plan_page_tail, sf_tune_page_head,
    sf_tune_page_tail;

/* One self-contained file. */
void sf_page_put(const sf_page_file *head, const sf_buf *json, const sf_page_file *tail,
                 sf_buf *out);

#endif
