/* A plan's schedule in time, as text: stages, micro-batches, and recompute. */
#ifndef SF_REPORT_REPORT_TIME_H
#define SF_REPORT_REPORT_TIME_H

#include "base/json.h"
#include "plan/plan.h"
#include "prog/target.h"
#include "report/table.h"

/* Messages that a pipeline rank sends, and receives, in a step. */
typedef struct sf_messages {
    int64_t count;
    double bytes;
} sf_messages;

/* Of all that the step computes, recompute. */
double sf_recomputed_share(const sf_plan *plan, const sf_graph *graph);

/* Stages, micro-batches, chunks, recompute, passes; `text` is NULL for none. */
enum { SF_IN_TIME_FACTS = 5 };
typedef struct sf_fact {
    const char *label, *text;
} sf_fact;
void sf_in_time_facts(const sf_plan *plan, const sf_graph *graph, sf_arena *arena,
                      sf_fact out[SF_IN_TIME_FACTS]);

/* A line for each, its label so wide; nothing where there is nothing to say. */
void sf_in_time_text(const sf_plan *plan, const sf_graph *graph, int width, sf_buf *out);
void sf_in_time_json(const sf_plan *plan, const sf_graph *graph, sf_json_writer *json);

/* Whether products of f32 are simulated in TF32: train computes so with --precision tf32 alone. */
bool sf_rounds_products(const sf_graph *graph, const sf_target *target);
void sf_precision_text(const sf_graph *graph, const sf_target *target, sf_buf *out);
void sf_precision_json(const sf_graph *graph, const sf_target *target, sf_json_writer *json);

/* Of the group that has most; nothing where the plan has no groups. */
void sf_messages_text(const sf_plan *plan, sf_messages most, sf_style style, sf_buf *out);
void sf_messages_json(const sf_plan *plan, sf_messages most, sf_json_writer *json);

#endif
