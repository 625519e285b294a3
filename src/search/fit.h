/* A plan in time: as little is computed again, and the batch is cut into as few turns, as makes it fit.
 *
 * Either costs time: what is computed again runs twice, and turns have smaller products and send more often. So a plan
 * that fits stays as it is. Else the ways to make it fit are tried, each with its program: nodes computed again, those
 * first that take the least time for the bytes that they make, until it fits, within layers, then within 2 of them, 4 and
 * so on; turns, 2, 4 and so on; and both. The fastest that fits is taken.
 */
#ifndef SF_SEARCH_FIT_H
#define SF_SEARCH_FIT_H

#include "search/search.h"

/* Sets plan->again and plan->micro_batches as the options want them, and prices the plan. It may still not fit: then it
 * is the smallest that was seen. */
sf_status sf_fit_in_time(const sf_graph *graph, const sf_search_options *options,
                         const sf_costs *costs, sf_plan *plan, sf_diag *diag, sf_price *out);

#endif
