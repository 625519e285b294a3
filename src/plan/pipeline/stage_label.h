/* Stages by labels: ops that the user places together, or orders by themselves, are a stage of
 * their own.
 *
 * Nodes of the forward pass have labels; an unlabelled node goes with its operands, or with its
 * first reader. A stage has nodes of one label, and each label as few stages as the flow of data
 * allows:
 *
 *     labels of a chain    a a b b a c        stages    0 0 1 1 2 3
 *
 * So layers that several forward passes go through, one after the other, have a stage for each
 * pass. */
#ifndef SF_PLAN_PIPELINE_STAGE_LABEL_H
#define SF_PLAN_PIPELINE_STAGE_LABEL_H

#include "plan/pipeline/stage.h"

typedef struct sf_labelled {
    uint32_t count;
    uint32_t *forward; /* by node, for sf_stages_complete */
    uint32_t *label;   /* by stage */
} sf_labelled;

/* `labels` is by node, SF_NONE: none. Labels of nodes that every reader computes, of nodes that do
 * not depend on the micro-batch, and of other phases, are ignored. There is at least one stage,
 * which has label SF_NONE if no node has one. Lives in the arena. */
sf_labelled sf_cut_by_labels(const sf_graph *graph, const uint32_t *labels, sf_arena *arena);

#endif
