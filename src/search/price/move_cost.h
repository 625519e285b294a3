/* What moves take: each by itself, for the search of ways between layouts; and the copies around collectives. */
#ifndef SF_SEARCH_PRICE_MOVE_COST_H
#define SF_SEARCH_PRICE_MOVE_COST_H

#include "plan/plan_reshards.h"
#include "search/price/node_work.h"

/* The cost of moves for sf_reshard: context is a const sf_costs *. Slices and masks cost their copy. And that of
 * moves that go together with others of their kind (plan/plan_reshards.h): their part of a bucket. */
sf_reshard_cost sf_move_seconds, sf_move_seconds_together;

/* Bytes of a rank that are copied because a tensor does not lie in memory as its collective wants it, part by part
 * for the members of the group, and because what arrives does not lie as the piece wants it. */
typedef struct sf_copies {
    double before, after;
} sf_copies;

sf_copies sf_copies_of(const sf_efforts *efforts, const sf_reshards *reshards,
                       const sf_resharding *reshard);

/* The bytes from which a message along the axis is faster if ranks along the axes after it, which all have it, send a part
 * each and gather it in forward and backward pass; INT64_MAX: it never is (plan/pipeline/pipeline.h). */
int64_t sf_split_bytes(const sf_costs *costs, const sf_mesh *mesh, int axis);

/* What a copy takes: each byte is read and written. */
double sf_copy_seconds(const sf_costs *costs, double bytes);

#endif
