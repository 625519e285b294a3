/* Common to pages and tables about a tuner's trials. */
#ifndef SF_REPORT_PAGE_TUNE_PAGE_H
#define SF_REPORT_PAGE_TUNE_PAGE_H

#include "base/str.h"
#include "sheaf/tune.h"

/* The values of a variable that were tried, each once, numbers by size; 0: there are more than `most`. */
int sf_tune_values(const sf_tune_report *report, int variable, int most, const char **out);

/* The report as `--json` prints it, and as the page has it. */
void sf_tune_json(const sf_tune_report *report, const char *title, bool indent, sf_buf *out);

#endif
