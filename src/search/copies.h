/* Copies that collectives need.
 *
 * What goes to the ranks of a group, or comes from them, are parts one behind the other. A tensor that is split
 * along its outermost dimension lies so. Any other is copied: before it is scattered or exchanged, and behind
 * what gathers or exchanges it. What does not lie in its own order at all, as most views do not, is copied before
 * every collective.
 */
#ifndef SF_SEARCH_COPIES_H
#define SF_SEARCH_COPIES_H

#include "cluster/cost.h"
#include "plan/moves.h"
#include "search/effort.h"

/* Bytes of a rank. */
typedef struct sf_copies {
    double before, behind;
} sf_copies;

sf_copies sf_copies_of(const sf_efforts *efforts, const sf_moves *moves, const sf_moving *move);

/* What a copy takes: each byte is read and written. */
double sf_copy_seconds(const sf_costs *costs, double bytes);

#endif
