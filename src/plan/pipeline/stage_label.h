/* Stages by labels: what a person places together, or wants to speak of by itself, is a stage of its own.
 *
 * Nodes of the forward pass have labels; what has none goes with what it reads, or with its first reader. A stage has nodes of
 * one label, and each label as few stages as the flow of data allows:
 *
 *     labels of a chain    a a b b a c        stages    0 0 1 1 2 3
 *
 * So layers that several forward passes go through, one after the other, have a stage for each pass.
 */
#ifndef SF_PLAN_PIPELINE_STAGE_LABEL_H
#define SF_PLAN_PIPELINE_STAGE_LABEL_H

#include "plan/pipeline/stage.h"

typedef struct sf_labelled {
    uint32_t count;
    uint32_t *forward; /* by node, for sf_stages_complete */
    uint32_t *label;   /* by stage */
} sf_labelled;

/* `labels` is by node, SF_NONE: none. What is said of nodes that are made anywhere, of those that turns do not change, and of
 * other phases, counts for nothing. There is at least one stage, which has label SF_NONE where no node has one. Lives in the
 * arena. */
sf_labelled sf_cut_by_labels(const sf_graph *graph, const uint32_t *labels, sf_arena *arena);

#endif
