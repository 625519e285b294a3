/* What pages and tables about a tuner's trials share. */
#ifndef SF_REPORT_PAGE_TUNE_PAGE_H
#define SF_REPORT_PAGE_TUNE_PAGE_H

#include "sheaf/tune.h"

/* The values of a variable that were tried, each once, numbers by size; 0: there are more than `most`. */
int sf_tune_values(const sf_tune_report *report, int variable, int most, const char **out);

#endif
