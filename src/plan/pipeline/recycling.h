/* Rounds: forward passes through the same layers, one after the other, of which the last alone has a backward pass, as the recycling
 * of AlphaFold2 has them.
 *
 * They are recognised from the graph: weights are multiplied with as often as there are rounds, each time with something that
 * follows from the time before; and the gradients of the step come from the last time alone.
 */
#ifndef SF_PLAN_PIPELINE_RECYCLING_H
#define SF_PLAN_PIPELINE_RECYCLING_H

#include "plan/pipeline/stage_cut.h"

/* How many rounds most weights are read in; 1: there is one forward pass. `of_node`, by node of the forward pass, or NULL: the
 * round it is in, from 0 on. Lives in the arena. */
uint32_t sf_find_rounds(const sf_graph *graph, sf_arena *arena, uint32_t **of_node);

/* Cuts each of `rounds` rounds into as many stages as there are pipeline ranks, all at the same
 * weights, so that pipeline rank g has stages g, g + groups, ... and a weight is on one of them.
 * `wish` is for the stages of the last round, one per pipeline rank, and `time`, by node, is the
 * time of each node by itself. Fills `forward`, by node. SF_EMISMATCH if the step does not have
 * so many rounds, if gradients go through all of them, or if they cannot be cut alike or do not
 * fit. */
sf_status sf_cut_rounds(const sf_graph *graph, uint32_t rounds, const sf_stage_request *request,
                        const double *time, sf_arena *arena, sf_diag *diag, uint32_t **forward);

#endif
