/* The two faces of a summary. */
#ifndef SF_REPORT_REPORT_SHOW_H
#define SF_REPORT_REPORT_SHOW_H

#include "report/summary.h"
#include "report/table.h"
#include "sheaf/report.h"

void sf_summary_text(const sf_summary *summary, const sf_show_options *options, sf_buf *out);

/* One object, with a line break at its end. The keys are described in docs/reference/cli.md and stay. */
void sf_summary_json(const sf_summary *summary, sf_buf *out);

/* The scope tree as rows of a table: see sf_summary_text. Equal siblings that are numbered are folded
 * into one row that holds their sum, unless `all`. */
void sf_scope_rows(const sf_summary *summary, bool all, int depth, sf_table *table);

/* The op table as Markdown. */
void sf_ops_text(sf_buf *out);

#endif
