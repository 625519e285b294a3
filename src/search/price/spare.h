/* What plans take that are made to fit by computing again what would be kept for the backward pass (search/fit.h), as far
 * as estimates can tell.
 *
 * Memory is that without all that could be computed again: the least. Time is that of computing again what a plan has
 * too much: nodes of the forward pass, those first that take the least for the bytes that they would keep. What stands
 * there while a layer is computed again is not counted, so a plan may need more of it.
 */
#ifndef SF_SEARCH_PRICE_SPARE_H
#define SF_SEARCH_PRICE_SPARE_H

#include "plan/plan_reshards.h"
#include "search/price/node_work.h"
#include "search/price/price.h"

typedef struct sf_spare {
    int64_t memory;         /* that plans are to fit in */
    const bool *recomputed; /* by node: it can be computed again */
    uint32_t *kept;         /* by value: efforts->last as if nothing were */
} sf_spare;

/* The same, by which estimates leave out what these nodes, by node, make for the backward pass. Lives in the arena, beside the others. */
const sf_efforts *sf_efforts_spare(const sf_efforts *efforts, const bool *recomputed,
                                   int64_t memory, sf_arena *arena);

/* Seconds that computing again adds to the plan of the moves, which takes `spared` bytes with all that could be. */
double sf_spare_seconds(const sf_efforts *efforts, const sf_reshards *reshards,
                        const uint32_t *moments, const sf_costs *costs, int64_t spared,
                        sf_arena *arena);

#endif
