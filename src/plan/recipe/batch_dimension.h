/* Along what a batch can be split: the dimension, and the digit of it, that the ops of the step go along with.
 *
 * Mostly that is the first dimension, in parts that follow each other. Where a step cuts its batch into pieces that it
 * works on in turn, to add up their gradients, the first dimension is [turns, rest]: the ranks share each turn, so each
 * has a part of every block (shard/layout.h), or of the second dimension where the batch comes in pieces.
 */
#ifndef SF_PLAN_RECIPE_BATCH_DIMENSION_H
#define SF_PLAN_RECIPE_BATCH_DIMENSION_H

#include "ir/graph.h"
#include "ir/uses.h"
#include "shard/layout.h"

/* Along `dim` of the argument, or what stands for it; its period is set. Replicated where nothing splits into `parts`
 * equal parts. */
sf_share sf_batch_share(const sf_graph *graph, const sf_uses *uses, uint32_t argument, int dim,
                        int parts);

#endif
