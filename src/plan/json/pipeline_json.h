/* The pipeline in a plan's file:
 *
 *     "pipeline": {
 *       "axis": "pipe",
 *       "stages": 4,
 *       "schedule": "1f1b",                     or ["0: F0.0 F0.1 B0.0 ...", ...]
 *       "nodes": [[0, 120, 0], [121, 260, 1]]   from the first of each to the last, of the forward pass: its stage
 *     }
 */
#ifndef SF_PLAN_PIPELINE_JSON_H
#define SF_PLAN_PIPELINE_JSON_H

#include "plan/plan.h"

void sf_pipeline_put(const sf_pipeline *pipeline, const sf_graph *graph, const sf_mesh *mesh,
                     sf_json_writer *writer);

/* Reads it, and puts the plan in stages. `text` and `file` are for messages. */
sf_status sf_pipeline_get(const sf_json *json, sf_str text, const char *file, const sf_graph *graph,
                          sf_diag *diag, sf_plan *plan);

#endif
