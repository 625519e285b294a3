/* The static checker: whether the local graphs of the ranks, taken together, are the step.
 *
 * It trusts neither the search for moves nor their emission, only what every value of a local graph
 * claims to be (sf_local_shard), and judges the claims by regions (shard/shard_region_set.h):
 *
 *  - what a move makes is covered exactly once by what the ranks of its collective bring, elements and
 *    contributions, and each of them brings something: the group is neither too small nor too large; and
 *    elements followed back through it, a sample, are where the layouts say;
 *  - what an op reads is its operands, all of them, as the plan wants them, and what it makes is what the
 *    plan says, which follows from the op's factors;
 *  - recompute is what the step computes, op by op;
 *  - arguments come and results come back as the plan says;
 *  - all ranks come to the same collectives in the same order, of the same size, in groups that they agree
 *    on; nothing is used before it is made.
 *
 * A message names the tensor and the pin that decided it.
 */
#ifndef SF_LOCAL_CHECK_LOCAL_H
#define SF_LOCAL_CHECK_LOCAL_H

#include "local/local.h"

/* Checks one rank's local graph. SF_EMISMATCH where it is not its part of the step. */
sf_status sf_check_local(const sf_local *local, sf_diag *diag);

/* Checks that two ranks come to the same collectives. */
sf_status sf_check_match(const sf_local *a, const sf_local *b, sf_diag *diag);

#endif
