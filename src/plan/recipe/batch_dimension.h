/* The dimension along which a batch can be split, and the digit of it, so that the ops of the step
 * run split.
 *
 * Mostly that is the first dimension, in contiguous parts. If a step splits its batch into
 * micro-batches itself, to accumulate their gradients, the first dimension is [micro-batches,
 * rest]: the ranks share each micro-batch, so each has a part of every block (shard/layout.h), or
 * of the second dimension if the batch is already split. */
#ifndef SF_PLAN_RECIPE_BATCH_DIMENSION_H
#define SF_PLAN_RECIPE_BATCH_DIMENSION_H

#include "ir/graph.h"
#include "ir/uses.h"
#include "shard/layout.h"

/* Along `dim` of the argument, or its equivalent; its period is set. Replicated if nothing splits
 * into `parts` equal parts. */
sf_share sf_batch_share(const sf_graph *graph, const sf_uses *uses, uint32_t argument, int dim,
                        int parts);

#endif
