/* The static checker: checks that the local graphs of the ranks together are the step.
 *
 * It trusts neither the search for reshards nor their emission, only the record of every value of a
 * local graph (sf_local_shard), and checks these records by regions (shard/shard_region_set.h):
 *
 *  - the operands of the ranks of a collective cover the result of a reshard exactly once,
 *    elements and contributions, and each of them contributes: the group is neither too small nor
 *    too large; and a sample of elements, traced back through it, is where the layouts say;
 *  - the operands of an op are all the operands of its node, in the layouts of the plan, and its
 *    results have the layouts of the plan, which follow from the op's factors;
 *  - recomputed clones compute the same as the step, op by op;
 *  - arguments and results have the layouts of the plan;
 *  - all ranks reach the same collectives in the same order, of the same size, in groups that they
 *    agree on; no value is used before it is made.
 *
 * A message names the tensor and the pin that decided it. */
#ifndef SF_LOCAL_CHECK_LOCAL_H
#define SF_LOCAL_CHECK_LOCAL_H

#include "local/local.h"

/* Checks one rank's local graph. SF_EMISMATCH where it is not its part of the step. */
sf_status sf_check_local(const sf_local *local, sf_diag *diag);

/* Whether they are one collective: of one kind, number, size and tensor. */
bool sf_same_collective(const sf_local *a, const sf_node *x, const sf_local *b, const sf_node *y);

/* Checks that two ranks come to the same collectives. */
sf_status sf_check_match(const sf_local *a, const sf_local *b, sf_diag *diag);

#endif
