/* What a plan does in time, in words: what is computed again, and in how many turns. */
#ifndef SF_REPORT_IN_TIME_H
#define SF_REPORT_IN_TIME_H

#include "base/json.h"
#include "plan/plan.h"

/* A line for each, its label so wide; nothing where there is nothing to say. */
/* Of all that the step computes, what is computed again. */
double sf_share_again(const sf_plan *plan, const sf_graph *graph);

void sf_in_time_text(const sf_plan *plan, const sf_graph *graph, int width, sf_buf *out);
void sf_in_time_json(const sf_plan *plan, const sf_graph *graph, sf_json_writer *json);

#endif
