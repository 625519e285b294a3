/* What stands in memory between the instructions of the unsplit program: the memory of an estimate. */
#ifndef SF_SEARCH_PRICE_ESTIMATE_MEMORY_H
#define SF_SEARCH_PRICE_ESTIMATE_MEMORY_H

#include "plan/plan_reshards.h"
#include "search/price/node_work.h"
#include "search/price/price.h"

/* Sets memory and by_kind. `moments` is by move (search/price/estimate_time.h), the arena for what is needed
 * meanwhile. */
void sf_estimate_memory(const sf_efforts *efforts, const sf_reshards *reshards,
                        const uint32_t *moments, sf_arena *arena, sf_price *out);

#endif
