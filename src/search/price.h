/* What a plan costs on a cluster: the time and the memory of a step, without running it.
 *
 * TIME. The nodes are walked in the order of the step, those of the update in the order in which gradients come,
 * as every rank runs them, kernel by kernel (search/effort.h). There are two streams: ops, one after the other, and collectives, one after the other. A
 * move starts when its operand is made (reductions, and gathers of what the step returns) or when somebody
 * wants its result (all others), and when the stream of collectives is free; who needs its result waits. What
 * is waited for is exposed, the rest is hidden, and costs no more than what it drags on the ops beside it
 * (cluster.h). Moves are those that local/local.h makes (plan/moves.h), with the copies that they need
 * (search/copies.h).
 *
 * MEMORY. Arguments stand for the whole step, a state result in the place of its argument. Every other
 * stored value and every moved version lives from its maker to its last use, in the order that programs
 * have (search/lives.h). Views stand where their operand stands, slices too, and what is computed again is
 * not kept. Over the recipes this is within a few percent of what prog/ takes, and up to a quarter above it for
 * long sequences (test/search/price_test.c): near enough to steer by, not to rely on.
 */
#ifndef SF_SEARCH_PRICE_H
#define SF_SEARCH_PRICE_H

#include "plan/plan.h"
#include "search/effort.h"
#include "shard/reshard.h"

/* A plan whose price is above the limit, but by no more than this, is lowered to see whether it fits. */
#define SF_PRICE_OFF 1.2

typedef enum sf_memory_kind {
    SF_MEMORY_PARAM,
    SF_MEMORY_STATE, /* of the optimizer */
    SF_MEMORY_BATCH, /* batch, keys, other arguments */
    SF_MEMORY_GRADIENT,
    SF_MEMORY_ACTIVATION, /* all other values that are stored */
    SF_MEMORY_MOVED,      /* versions in other layouts: gathered parameters, ... */
    SF_MEMORY_KIND_COUNT
} sf_memory_kind;
const char *sf_memory_kind_name(sf_memory_kind kind);

typedef struct sf_price {
    double seconds;                  /* of a step: compute + exposed */
    double compute, exposed, hidden; /* hidden: time of collectives beside ops */
    double traffic;                  /* bytes that a rank puts into, or gets out of, collectives */
    int ncollectives;
    int64_t memory;                        /* the peak of a rank */
    int64_t by_kind[SF_MEMORY_KIND_COUNT]; /* at the peak */
    uint32_t peak;                         /* the node at which it is */
} sf_price;

/* The cost of moves for sf_reshard: context is a const sf_costs *. Slices and masks cost their copy. And that of
 * moves that go together with others of their kind (plan/moves.h): their part of a bucket. */
sf_move_cost sf_move_seconds, sf_move_seconds_together;

/* A collective of the step, for those who want to see each. */
typedef struct sf_priced_move {
    sf_value value;
    sf_move_kind kind;
    sf_axes axes;
    sf_phase phase;
    double bytes, seconds, exposed;
    sf_layout before, after;
} sf_priced_move;
typedef void sf_see_move(void *context, const sf_priced_move *move);

/* `costs` is of the plan's mesh. `see` may be NULL. SF_EINPUT where a layout cannot become another. */
sf_status sf_price_plan(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                        sf_see_move *see, void *context, sf_diag *diag, sf_price *out);

#endif
