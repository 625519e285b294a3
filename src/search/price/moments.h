/* When moves take place, between the instructions of the unsplit program. */
#ifndef SF_SEARCH_PRICE_MOMENTS_H
#define SF_SEARCH_PRICE_MOMENTS_H

#include "plan/plan_reshards.h"
#include "search/price/node_work.h"

/* Moments, of which each instruction has some: before it; behind it; and behind its second half, where a move cuts it
 * in two. */
enum { SF_BEFORE, SF_BEHIND, SF_BEHIND_ALL, SF_MOMENTS };
static inline uint32_t sf_moment(uint32_t inst, uint32_t part)
{
    return inst * SF_MOMENTS + part;
}

/* The instruction that first wants what is moved; ninsts for a result of the step. */
uint32_t sf_reading_inst(const sf_efforts *efforts, const sf_resharding *reshard);

/* By move: when it takes place. One that starts early comes after what makes its operand, another before who wants it
 * first; but a gather goes ahead, as in programs (prog/order.c): when the collective before it is wanted, unless it is
 * wanted earlier itself. `is_second`, by node: it is of the second half of its instruction. In the arena. */
const uint32_t *sf_find_moments(const sf_efforts *efforts, const sf_reshards *reshards,
                                const bool *is_second, sf_arena *arena);

#endif
