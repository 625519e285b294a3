/* What stands in the memory of a rank, from when to when: the memory of a price (plan/price.h).
 *
 * Time is the order of the step, but for the update, which is counted as done as soon as what it reads is
 * there: programs are ordered so (prog/order.c), and then a gradient does not wait for all others.
 */
#ifndef SF_PLAN_LIVES_H
#define SF_PLAN_LIVES_H

#include "plan/moves.h"
#include "plan/price.h"

/* Sets memory, by_kind and peak. */
void sf_price_memory(const sf_efforts *efforts, const sf_moves *moves, sf_price *out);

#endif
