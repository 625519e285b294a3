/* The memory of a rank at its peak, by kind, with the same words in all reports. */
#ifndef SF_REPORT_REPORT_MEMORY_H
#define SF_REPORT_REPORT_MEMORY_H

#include "report/table.h"
#include "search/price/price.h"

/* A heading, a row for each kind that there is, and their sum. */
void sf_memory_text(const sf_price *price, sf_arena *arena, sf_style style, sf_buf *out);

/* The keys "memory_by_kind" and "peak" of an object. */
void sf_memory_json(const sf_price *price, sf_json_writer *json);

#endif
