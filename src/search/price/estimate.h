/* What a plan is expected to cost: an estimate of its price (search/price/price.h), a few times faster to make, for
 * candidates of a search.
 *
 * TIME. The instructions of the unsplit program (search/price/node_work.h) run in their order, each cut as the plan cuts
 * its nodes. Between them stand the moves of the plan (plan/plan_reshards.h), as they do in the local graph: those that start
 * early behind the instruction that makes their operand, others before the one that reads them first; where that is
 * the same, the instruction becomes two; a gather goes ahead (search/price/moments.h). The update waits for no
 * collective as long as there is something else to do.
 * Two clocks as in sim/sim.h. Copies around collectives count (search/price/move_cost.h).
 *
 * MEMORY. Arguments stand for the whole step, every other stored value as long as in the unsplit program, and moved
 * versions from their move to their last reader.
 */
#ifndef SF_SEARCH_PRICE_ESTIMATE_H
#define SF_SEARCH_PRICE_ESTIMATE_H

#include "search/price/node_work.h"
#include "search/price/price.h"

/* A plan that is expected to take more than the limit, but by no more than this, is lowered to see whether it
 * fits. */
#define SF_ESTIMATE_OFF 1.2

/* Of plans whose estimates of time are as near as this, either may be the faster; of small steps, where latencies
 * count for more and the next instruction is often not the one that the estimate thinks of. */
#define SF_ESTIMATE_NEAR 1.05
#define SF_ESTIMATE_NEAR_SPARED 1.1 /* where it is estimated what makes them fit, too */
#define SF_ESTIMATE_NEAR_SMALL 1.3

/* `costs` is of the plan's mesh. `see` may be NULL. SF_EINPUT where a layout cannot become another. */
sf_status sf_estimate_plan(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                           sf_see_reshard *see, void *context, sf_diag *diag, sf_price *out);

#endif
