/* Rules that make a network smaller and keep its optimal cost, memory included. docs/design/solver.md has the
 * argument for each.
 *
 * A rule looks at one node, says whether it changed the network, and puts what it changed into the
 * network's queue; sf_reduce applies them until none applies.
 */
#ifndef SF_SOLVE_REDUCE_REDUCTIONS_H
#define SF_SOLVE_REDUCE_REDUCTIONS_H

#include "solve/reduce/mutable_problem.h"

/* Until nothing changes, or the network is infeasible. */
void sf_reduce(sf_network *net);

/* Strategies that are forbidden, or are with every strategy of some neighbour. */
bool sf_rule_forbidden(sf_network *net, uint32_t node);

/* Edges that are a sum of a cost of each end by itself. */
bool sf_rule_separable(sf_network *net, uint32_t node);

/* A node that has one choice left for each of some neighbour's: the two become one. */
bool sf_rule_determined(sf_network *net, uint32_t node);

/* A node that uses nothing and has at most two neighbours: paid by them. */
bool sf_rule_eliminate(sf_network *net, uint32_t node);

/* Strategies that another beats in cost and in usage, whatever the neighbours take. */
bool sf_rule_dominated(sf_network *net, uint32_t node);

/* The same at a node with one neighbour, for each strategy of that. */
bool sf_rule_leaf(sf_network *net, uint32_t node);

/* Points at which the limit cannot be passed, or only where it is passed at another; strategies that
 * never fit. */
bool sf_rule_times(sf_network *net);

#endif
