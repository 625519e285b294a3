/* The last resort where no plan fits: tensors go to memory of the host while nobody needs them (pass offload). */
#ifndef SF_SEARCH_OFFLOAD_FALLBACK_H
#define SF_SEARCH_OFFLOAD_FALLBACK_H

#include "search/search.h"

/* Of the candidates that were lowered, those that take least, tried with pass offload behind the passes that there are: the
 * fastest that then fits, with other passes that make room where these are faster, whose plan has the passes and whose price
 * is what they make it; or NULL. */
sf_candidate *sf_find_on_host(const sf_graph *graph, const sf_search_options *options,
                              sf_found_plans *found);

#endif
