/* Products of groups of rows, each with a matrix of its own, that multiply every row with every matrix: what JAX makes of
 * ragged_dot for CPUs. Rows are masked by where groups begin and end, which are sums of sizes.
 */
#ifndef SF_FRONT_DENSE_GROUPS_H
#define SF_FRONT_DENSE_GROUPS_H

#include "base/diag.h"
#include "ir/graph.h"

/* Warns, once, with the number of groups, which is how many times the products cost too much. */
void sf_warn_dense_groups(const sf_graph *graph, sf_diag *diag);

#endif
