/* Operation counts: of a node with its regions, as often as they run, and of a step. */
#ifndef SF_OP_FLOPS_H
#define SF_OP_FLOPS_H

#include "op/op.h"

/* Loops that stay and branches: their regions are made of nodes that run as any other. The regions of a reduction or
 * a sort are part of the op. */
bool sf_is_control(const sf_node *node);

/* An expensive op for the size of its result: two stages should not both compute it, nor another
 * than its forward node's. */
bool sf_is_dear(const sf_node *node);

/* The trip count of the loop, for any operands; -1 if it is not certain. */
int64_t sf_certain_trips(const sf_node *loop);

/* The same for cost estimates: if it is not certain, the user's value (option assume-trip-count);
 * -1 without one. */
double sf_trips_of(const sf_node *loop);

/* How often the region of a loop or branch runs when the node runs once; 1 where that is not known. The condition of a
 * loop, region 0, holds as often as the body runs, and fails once. */
double sf_region_runs(const sf_node *node, uint32_t region);

double sf_node_flops(const sf_graph *graph, const sf_node *node);
double sf_step_flops(const sf_graph *graph);

/* A warning if a loop has an unknown trip count: all figures count it once. */
void sf_warn_unknown_trips(const sf_graph *graph, sf_diag *diag);

#endif
