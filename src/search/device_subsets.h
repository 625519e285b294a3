/* A cluster with devices of different kinds: which of them a plan is for.
 *
 * Where every rank has a part in every node of a step, the slowest device sets the pace, so devices of another kind may
 * only slow the rest. In a pipeline each stage gets what suits the devices of its group. So plans are looked for on every set
 * of kinds, each with all its nodes: where there are more than three kinds, on the fastest, the two fastest and so on. Where
 * kinds are mixed, pipelines are looked for in the order of the nodes and the other way round. Sets of which it is known that
 * no plan on them is faster than the best are left out. The fastest plan is the answer; it says which devices are idle, and
 * what they would have cost.
 */
#ifndef SF_SEARCH_DEVICE_SUBSETS_H
#define SF_SEARCH_DEVICE_SUBSETS_H

#include "search/search.h"

/* As sf_choose_plan (search/finalists.h), on whatever part of the cluster is best. A mesh of the user is tried on the parts that
 * have as many devices. */
sf_status sf_choose_on_parts(const sf_graph *graph, const sf_search_options *options,
                             sf_buf *misfit, sf_diag *diag, sf_plan **out);

#endif
