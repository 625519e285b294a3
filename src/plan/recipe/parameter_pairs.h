/* The uses of parameters in the forward phase, for recipes. */
#ifndef SF_PLAN_RECIPE_PARAMETER_PAIRS_H
#define SF_PLAN_RECIPE_PARAMETER_PAIRS_H

#include "ir/graph.h"

/* By argument: the dimension along which the parameter splits into `parts` as Megatron does, or -1.
 *
 * A product with a parameter is split by columns if its result, so split, flows through ops that
 * keep it split to another product with a parameter, which sums over it: that one is split by rows.
 * No other op in between may sum over it: a softmax over the split dimension ends the search. */
int *sf_pair_dims(const sf_graph *graph, int parts, sf_arena *arena);

/* By argument: the dimension of a parameter that is a batch dimension of a product, its experts, where
 * it splits into `parts`; or -1. */
int *sf_expert_dims(const sf_graph *graph, int parts, sf_arena *arena);

#endif
