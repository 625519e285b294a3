/* Passes for people and machines: which there are, and what those of a plan did. */
#ifndef SF_REPORT_REPORT_PASSES_H
#define SF_REPORT_REPORT_PASSES_H

#include "base/json.h"
#include "report/table.h"
#include "search/price/price_pipeline.h"

/* A row for the program as it was lowered, and for each pass; nothing where the plan has none. */
void sf_outcomes_print(const sf_rank_run *run, sf_style style, sf_arena *arena, sf_buf *out);

/* The same as the key "passes" of an object, with the memory at each instruction. */
void sf_outcomes_put(const sf_rank_run *run, sf_json_writer *json);

#endif
