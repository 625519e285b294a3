/* The plan of a search.
 *
 * A search goes by estimates. Its finalists are lowered, and priced by their programs, the most promising first,
 * until no other can be faster; the fastest that fits is the answer, and checked. Where memory was misjudged, so that no
 * finalist fits, or so that faster plans were left out, the search is done again with its estimates held to what
 * corrects that.
 */
#ifndef SF_SEARCH_FINALISTS_H
#define SF_SEARCH_FINALISTS_H

#include "search/search.h"

/* *out is for sf_plan_free, with what is expected of it in `predicted`, but for step and cluster, which are "".
 * SF_EMISMATCH where nothing fits in options->memory, with advice in the diag and, as JSON, in `misfit`, or NULL. */
sf_status sf_choose_plan(const sf_graph *graph, const sf_search_options *options, sf_buf *misfit,
                         sf_diag *diag, sf_plan **out);

#endif
