/* Stacked weights: tensors that have the weights of several layers one behind the other, as loops over layers read them.
 *
 * State stands whole in the groups of one stage. A stack whose layers are in several stages so stands with the first of them,
 * with all its optimizer state, and layers are sent from there in each step: such a pipeline saves little memory.
 */
#ifndef SF_PLAN_STACKED_H
#define SF_PLAN_STACKED_H

#include "plan/pipe/pipeline.h"

typedef struct sf_stacked {
    uint32_t count, first; /* parameters whose slices several groups read, and the first of them */
    int64_t bytes, of;     /* of these, and of all parameters */
} sf_stacked;

/* Nothing, where the pipeline is NULL. */
sf_stacked sf_find_stacked(const sf_graph *graph, const sf_pipeline *pipeline);

/* Says so where that is much of the parameters. */
void sf_warn_stacked(const sf_graph *graph, const sf_pipeline *pipeline, sf_diag *diag);

#endif
