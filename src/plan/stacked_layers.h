/* Stacks of layers in a pipeline (plan/pipeline/layer_stack.h): rows are on the pipeline ranks that
 * compute their layers.
 *
 * The stages of a pipeline determine where each row of a stack is used. If these are on several
 * pipeline ranks, its arguments, parameter and state of the optimizer alike, are distributed over
 * them (shard/uneven_partition.h); otherwise each is on one as any other state. A stack whose rows
 * are split over the ranks of pipeline ranks already, and a tensor that the step reads by rows but
 * has other readers, are whole on the pipeline ranks of one stage, with all optimizer state, and
 * layers are sent from there in each step: such a pipeline saves little memory. */
#ifndef SF_PLAN_STACKED_LAYERS_H
#define SF_PLAN_STACKED_LAYERS_H

#include "plan/pipeline/layer_stack.h"
#include "plan/plan.h"

/* The plan has a pipeline, and its state is placed. */
void sf_plan_partition_stacks(sf_plan *plan, const sf_graph *graph);

/* How the plan distributes the rows of a stack; NULL: it does not. */
const sf_row_partition *sf_plan_row_partition_of(const sf_plan *plan, const sf_graph *graph,
                                                 const sf_stacks *stacks, uint32_t stack);

/* Parameters whose slices several pipeline ranks read, and that are not distributed: how many, the
 * first of them, and the bytes of these and of all parameters. Nothing, if the plan has no
 * pipeline. */
typedef struct sf_stacked {
    uint32_t count, first;
    int64_t bytes, of;
} sf_stacked;
sf_stacked sf_find_stacked(const sf_graph *graph, const sf_plan *plan);

/* Says so where that is much of the parameters. */
void sf_warn_stacked(const sf_graph *graph, const sf_plan *plan, sf_diag *diag);

#endif
