/* Which arguments of the batch have a row for each example.
 *
 * An argument of a batch need not be one: the scale of each feature, a table of positions, a mask
 * over tokens. Such a tensor has another size than most of the batch, and where it first meets the
 * batch its first dimension is another loop than the batch's. All others are taken to have rows:
 * whether the step can be split so is seen when it is split. */
#ifndef SF_PLAN_RECIPE_BATCH_ROWS_H
#define SF_PLAN_RECIPE_BATCH_ROWS_H

#include "ir/graph.h"

/* False for non-batch arguments and scalars. */
bool sf_has_rows(const sf_graph *graph, uint32_t argument);

#endif
