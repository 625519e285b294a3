/* How much is computed: by a node with what its regions hold, as often as they run, and by a step. */
#ifndef SF_OP_FLOPS_H
#define SF_OP_FLOPS_H

#include "op/op.h"

/* Loops that stay and branches: their regions are made of nodes that run as any other. The regions of a reduction or
 * a sort are part of the op. */
bool sf_is_control(const sf_node *node);

/* What takes much time for what it makes: two stages should not both do it, nor another than its forward node's. */
bool sf_is_dear(const sf_node *node);

/* How often the loop turns, whatever it is given; -1 where that is not certain. */
int64_t sf_certain_trips(const sf_node *loop);

/* The same for prices: where it is not certain, what a person said (option assume-trip-count); -1 where nobody did. */
double sf_trips_of(const sf_node *loop);

/* How often the region of a loop or branch runs when the node runs once; 1 where that is not known. The condition of a
 * loop, region 0, holds as often as the body runs, and fails once. */
double sf_region_runs(const sf_node *node, uint32_t region);

double sf_node_flops(const sf_graph *graph, const sf_node *node);
double sf_step_flops(const sf_graph *graph);

/* A warning where a loop turns nobody knows how often: all figures count it once. */
void sf_warn_unknown_trips(const sf_graph *graph, sf_diag *diag);

#endif
