/* What stands in the memory of a rank, from when to when: the memory of a price (search/price.h).
 *
 * Time is the order of the step, but for the update, which is counted as done as soon as what it reads is
 * there: programs are ordered so (prog/order.c), and then a gradient does not wait for all others.
 */
#ifndef SF_SEARCH_LIVES_H
#define SF_SEARCH_LIVES_H

#include "plan/moves.h"
#include "search/price.h"

/* Sets memory, by_kind and peak. */
void sf_price_memory(const sf_efforts *efforts, const sf_moves *moves, sf_price *out);

/* What could be less, in bytes of a rank at the respective peaks. */
typedef struct sf_relief {
    int64_t state; /* of all but batch and activations: what no smaller batch takes away */
    int64_t batch; /* of batch and activations, which grow with the batch */
    int64_t
        again; /* of all, if what waits for the backward pass were computed again there: at least */
} sf_relief;
sf_status sf_find_relief(const sf_efforts *efforts, const sf_plan *plan, sf_diag *diag,
                         sf_relief *out);

/* By value of the step: the bytes that it and its moved versions hold at the peak; what several share, such as
 * views, counts for the first. In the arena. */
sf_status sf_find_held(const sf_efforts *efforts, const sf_plan *plan, sf_arena *arena,
                       sf_diag *diag, double **out);

#endif
