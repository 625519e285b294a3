/* When what is done, on two clocks: the time of an estimate. */
#ifndef SF_SEARCH_PRICE_ESTIMATE_TIME_H
#define SF_SEARCH_PRICE_ESTIMATE_TIME_H

#include "plan/plan_reshards.h"
#include "search/price/node_work.h"
#include "search/price/price.h"

/* Sets all but memory, and shows each tensor that a collective moves; `see` may be NULL. Returns, by move, when it
 * takes place; in the arena. */
const uint32_t *sf_estimate_time(const sf_efforts *efforts, const sf_reshards *reshards,
                                 const sf_costs *costs, sf_arena *arena, sf_see_reshard *see,
                                 void *context, sf_price *out);

#endif
