/* A training step of equal layers: the least that has everything a pipeline needs. */
#ifndef TEST_SUPPORT_CHAIN_H
#define TEST_SUPPORT_CHAIN_H

#include "ir/graph.h"

/* A chain of products, each behind a tanh, whose gradients need what every one of them made; the loss is a sum of squares.
 * `tied`: the last layer has the weights of the first. */
sf_graph *test_chain(int layers, int batch, int width, bool tied);

/* Not tied; what the last layer makes of each example, and the largest of that, are results, too. */
sf_graph *test_chain_reporting(int layers, int batch, int width);

/* Not tied; turns need something of all turns. `balances`: the squares of what each feature of a layer adds up to over the batch
 * are part of the loss, for every second layer, as where loads of experts are balanced: the backward pass reads those sums.
 * Else, the loss is divided by what the last layer makes, added up over the batch: so the forward pass goes on from that. */
sf_graph *test_chain_needing_all(int layers, int batch, int width, bool balances);

#endif
