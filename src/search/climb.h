/* A climb from a plan that fits: what a plan has beside layouts is changed, one thing after the other, as long as that makes the
 * simulated step faster and it still fits.
 *
 * Changed are micro-batches, the schedule of stages that stay where they are, whether state is sharded between steps where the update
 * is already, the layouts of nodes, where those of arguments say others, passes, and what is computed again. What a person said is left as it is. Of each kind, all changes are simulated, and the best
 * is taken; the climb ends when no kind helps, or after so much work. A plan of a recipe, which people know, is kept unless all changes
 * together save more than the margin. A change that helps only together with one of another kind is not found, but for passes that come with state, and for more computed again where a change makes it too large. */
#ifndef SF_SEARCH_CLIMB_H
#define SF_SEARCH_CLIMB_H

#include "search/search.h"

/* A change is worth it where it saves so much of the time. */
#define SF_CLIMB_STEP 0.001

/* Changes the plan, whose step takes that long. Returns what it is now, in the plan's memory, and *runs are of that; NULL where
 * nothing helps: then *runs is left as it was. */
const sf_full_price *sf_climb(const sf_graph *graph, const sf_search_options *options,
                              sf_plan *plan, double seconds, sf_group_runs *runs);

#endif
