/* Plans in stages: pipelines whose groups split their stages as recipes do, or as a search for the best of them says.
 *
 * For each number of groups that divides the devices, and each recipe on those of a group, the kernels of the unstaged plan
 * tell about how long the staged one takes: a share of a group in those of all turns, the time that the pipeline fills and
 * drains, and its share in what runs once. Those that may be faster than what is known are cut
 * where the step is narrow into stages that take equally long (plan/pipeline/stage_cut.h), which tells what groups hold at the least, and
 * how evenly they share (search/stage_estimate.h). Of those that may fit, the one that seems fastest comes first: all its groups are lowered
 * and simulated together. What does not fit is cut by its memory, too, and layers are computed again. For the pipeline that is best so, layouts inside of its
 * groups are then searched for.
 *
 * Pins hold in every plan. A mesh that is given has groups along its first axis, "pipe"; on it, layouts are those of recipes and pins.
 */
#ifndef SF_SEARCH_PIPELINE_SEARCH_H
#define SF_SEARCH_PIPELINE_SEARCH_H

#include "search/search.h"

/* The efforts of the options are known. A plan in stages that fits and takes less than `worth` seconds, and what its groups run, both to be freed; *out is NULL where none
 * was found. What was told of it is in the arena of the plan. Options about stages, schedule and turns are obeyed; where they cannot be, the status says why the last was not made. */
sf_status sf_search_pipes(const sf_graph *graph, const sf_search_options *options, double worth,
                          sf_diag *diag, sf_plan **out, const sf_full_price **simulated,
                          sf_group_runs *runs);

/* Whether the options leave room for pipelines. */
bool sf_may_pipe(const sf_search_options *options);

/* Whether the first axis of the mesh, or NULL, is that of groups: there are no plans without stages on it. */
bool sf_mesh_is_piped(const sf_mesh *mesh);

#endif
